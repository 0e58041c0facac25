# The Homebrew formula, as a template: packaging/fill writes the version, the checksums and the address of the releases.
class Pitstop < Formula
  desc "Terminal supervisor for Claude Code: reboots it into a fresh session that carries on"
  homepage "https://github.com/@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://github.com/@REPOSITORY@/releases/download/v@VERSION@/pitstop-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256 aarch64-apple-darwin@"
    end
    on_intel do
      url "https://github.com/@REPOSITORY@/releases/download/v@VERSION@/pitstop-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256 x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/@REPOSITORY@/releases/download/v@VERSION@/pitstop-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "https://github.com/@REPOSITORY@/releases/download/v@VERSION@/pitstop-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "pitstop"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/pitstop.bash" => "pitstop"
    zsh_completion.install "completions/_pitstop"
    fish_completion.install "completions/pitstop.fish"
    doc.install "README.md", "CHANGELOG.md", "config.toml"
  end

  test do
    assert_equal "pitstop #{version}", shell_output("#{bin}/pitstop -V").strip
    system bin/"pitstop", "check"
  end
end
