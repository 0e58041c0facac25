//! The table of runners: the words by which a command line calls each of them, and the patterns of its lines.
//!
//! The meaning of a line is that of the first pattern that matches it and applies in the current part of the output. To add a
//! runner, add a row and its patterns, each with an example line, which a test checks against it.

use Meaning::{
    Broken, Ended, FileFailed, FilePassed, Listed, More, Nothing, OneFailed, OnePassed,
    PackageEnded, PackageFailed, PackagePassed, PartFailed, Passed, PassedAfterAll, Said, Seen,
    Start, Summary, Tree,
};
use Part::{Any, List, Outside, Printed, Running};

/// A part of a runner's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// Any part; as the part that follows a line, no change.
    Any,
    /// The part before, between and after the tests.
    #[default]
    Outside,
    /// The part in which verdicts arrive.
    Running,
    /// The output of tests: none of it is the runner's.
    Printed,
    /// The list of failures, or the lines of the totals.
    List,
}

/// The meaning of a line. The group `name` of its pattern is the name of the test, the file or the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A run begins, or another of its binaries.
    Start,
    /// A run exists, which may have begun without a start line.
    Seen,
    /// The run has ended, with these counts.
    Summary,
    /// More counts of a run that has ended.
    More,
    /// The run has ended, and the line has no counts.
    Ended,
    /// The tests could not be built or collected.
    Broken,
    /// A part of the run has failed, whose lines may have been cut off.
    PartFailed,
    /// A test has passed.
    Passed,
    /// A test has passed, even if its earlier tries failed.
    PassedAfterAll,
    /// A test has failed, according to a line that a test may have printed.
    Said,
    /// A test has failed, according to the runner's own list.
    Listed,
    /// A test has passed whose package is named after it; it is counted by its line.
    OnePassed,
    /// A test has failed whose package is named after it; it is counted by its line.
    OneFailed,
    /// A package whose tests all passed.
    PackagePassed,
    /// A package with a test that failed, or one that failed before any test.
    PackageFailed,
    /// A package with no tests.
    PackageEnded,
    /// A file whose tests all passed.
    FilePassed,
    /// A line of a tree of tests: `passed` or `failed` is a test, `block` is the parent of other lines.
    Tree,
    /// A file of which a test failed, whose tests follow.
    FileFailed,
    /// A line without meaning that only looks like another one.
    Nothing,
}

/// A runner.
pub(super) struct Row {
    /// The command that people know it by, which is its name.
    pub(super) word: &'static str,
    /// The words by which a command line calls it, with bars between those that do the same: the program, if that is another
    /// word, and the word itself.
    pub(super) called: (&'static str, &'static str),
    /// The arguments that do not select tests.
    pub(super) plain: &'static [&'static str],
    /// True if a package manager's `test` script may run it.
    pub(super) by_script: bool,
    /// True if one run has many summaries: then two runs cannot be distinguished by their output.
    pub(super) many: bool,
}

/// The rows of all runners. Nextest comes first, because the lines between its first and its last line are its own.
#[rustfmt::skip]
pub(super) const ROWS: [Row; 23] = [
    Row { word: "cargo nextest", called: ("cargo", "nextest"), plain: &["run"], by_script: false, many: false },
    Row { word: "cargo test", called: ("cargo", "test"), plain: &[], by_script: false, many: true },
    Row { word: "pytest", called: ("", "pytest"), plain: &[".", "auto", "logical"], by_script: false, many: false },
    Row { word: "python -m unittest", called: ("", "unittest|manage.py"), plain: &["discover", "test"], by_script: false, many: false },
    Row { word: "go test", called: ("go", "test"), plain: &["./..."], by_script: false, many: true },
    Row { word: "jest", called: ("", "jest"), plain: &["run"], by_script: true, many: false },
    Row { word: "vitest", called: ("", "vitest"), plain: &["run"], by_script: true, many: false },
    Row { word: "mocha", called: ("", "mocha"), plain: &[], by_script: true, many: false },
    Row { word: "node --test", called: ("node", "--test"), plain: &[], by_script: true, many: false },
    Row { word: "rspec", called: ("", "rspec"), plain: &["d", "doc", "documentation", "p", "progress"], by_script: false, many: false },
    Row { word: "phpunit", called: ("", "phpunit|pest"), plain: &[], by_script: false, many: false },
    Row { word: "dotnet test", called: ("dotnet", "test"), plain: &["Release", "Debug", "minimal", "normal", "quiet"], by_script: false, many: true },
    Row { word: "mix test", called: ("mix", "test"), plain: &[], by_script: false, many: false },
    Row { word: "mvn test", called: ("", "mvn|mvnw"), plain: &["test", "clean", "verify", "install", "package"], by_script: false, many: true },
    Row { word: "gradle test", called: ("", "gradle|gradlew"), plain: &["test", "check", "build", "clean"], by_script: false, many: false },
    Row { word: "sbt test", called: ("sbt", "test"), plain: &[], by_script: false, many: true },
    Row { word: "swift test", called: ("swift", "test"), plain: &[], by_script: false, many: false },
    Row { word: "deno test", called: ("deno", "test"), plain: &[], by_script: true, many: false },
    Row { word: "bun test", called: ("bun", "test"), plain: &[], by_script: true, many: false },
    Row { word: "flutter test", called: ("flutter|dart", "test"), plain: &[], by_script: false, many: false },
    Row { word: "rails test", called: ("rails|rake", "test"), plain: &[], by_script: false, many: false },
    Row { word: "ctest", called: ("", "ctest"), plain: &["Release", "Debug"], by_script: false, many: false },
    Row { word: "bazel test", called: ("bazel|bazelisk", "test"), plain: &["//..."], by_script: false, many: false },
];

/// A pattern: its runner, the part in which it applies, its meaning, the part that follows, the expression, and an example.
pub(super) struct Pattern(
    pub(super) &'static str,
    pub(super) Part,
    pub(super) Meaning,
    pub(super) Part,
    pub(super) &'static str,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the test that walks the table")
    )]
    pub(super) &'static str,
);

#[rustfmt::skip]
pub(super) const PATTERNS: &[Pattern] = &[
    Pattern("cargo nextest", Any, Start, Running, r"^ *Nextest run ID ", " Nextest run ID 2f6c with nextest profile: default"),
    Pattern("cargo nextest", Outside, Start, Running, r"^ *Starting [0-9]+ tests? across ", "    Starting 4 tests across 2 binaries"),
    Pattern("cargo nextest", Any, Summary, List, r"^ *Summary \[.* tests? run: ", "     Summary [   0.047s] 4 tests run: 3 passed (1 flaky), 1 failed, 0 skipped"),
    Pattern("cargo nextest", Any, Broken, Outside, r"cargo test --no-run --message-format json-render-diagnostics", "error: command `cargo test --no-run --message-format json-render-diagnostics` exited with code 101"),
    Pattern("cargo nextest", Any, PassedAfterAll, Any, r"^ *(?:TRY [0-9]+ )?(?:PASS|LEAK) \[[> .0-9]+s\] +(?:\([ 0-9/]+\) +)?(?<name>[^ (]\S* .+)", "        PASS [   0.023s] (1/4) tide tests::adds"),
    Pattern("cargo nextest", Any, Said, Any, r"^ *(?:TRY [0-9]+ )?(?:FAIL|TIMEOUT|ABORT|TMT|SIG[A-Z0-9]+) \[[> .0-9]+s\] +(?:\([ 0-9/]+\) +)?(?<name>[^ (]\S* .+)", "  TRY 2 FAIL [   0.013s] (2/4) tide tests::fails"),

    Pattern("cargo test", Any, Start, Running, r"^running [0-9]+ tests?$", "running 12 tests"),
    Pattern("cargo test", Any, Summary, Outside, r"^test result: ", "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.40s"),
    Pattern("cargo test", Any, Broken, Any, r"^error: could not compile `.+` \((?:.+ )?test(?: .+)?\)", "error: could not compile `x` (lib test) due to 1 previous error"),
    Pattern("cargo test", Any, PartFailed, Any, r"^error: [0-9]+ targets? failed:$", "error: 1 target failed:"),
    Pattern("cargo test", Running, Nothing, Printed, r"^failures:$", "failures:"),
    Pattern("cargo test", Printed, Nothing, List, r"^failures:$", "failures:"),
    Pattern("cargo test", Outside, Nothing, List, r"^failures:$", "failures:"),
    Pattern("cargo test", List, Said, Printed, r"^---- (?<name>.+?)(?: - should panic)? stdout ----$", "---- tests::pears_add_up stdout ----"),
    Pattern("cargo test", Printed, Said, Any, r"^---- (?<name>.+?)(?: - should panic)? stdout ----$", "---- tests::pears_add_up stdout ----"),
    Pattern("cargo test", List, Listed, Any, r"^    (?<name>.+?)(?: - should panic)?$", "    tests::pears_add_up"),
    Pattern("cargo test", Running, Passed, Any, r"^test (?<name>.+?)(?: - should panic)? \.\.\. ok(?: <.+)?$", "test tests::plums_panic - should panic ... ok"),
    Pattern("cargo test", Running, Said, Any, r"^test (?<name>.+?)(?: - should panic)? \.\.\. FAILED(?: <.+)?$", "test tests::pears_add_up ... FAILED"),
    // Its start line was cut off.
    Pattern("cargo test", Outside, Said, Any, r"^test (?<name>\S+)(?: - should panic)? \.\.\. FAILED(?: <.+)?$", "test tests::pears_add_up ... FAILED"),
    Pattern("cargo test", Running, Said, Any, r"^(?<name>.+) --- FAILED$", "tests::pears_add_up --- FAILED"),

    Pattern("pytest", Any, Start, Running, r"^=+ test session starts =+$", "===== test session starts ====="),
    Pattern("pytest", Any, Seen, List, r"^=+ short test summary info =+$", "=== short test summary info ==="),
    Pattern("pytest", Printed, Nothing, Running, r"^(?:___|===)", "___ test_bad ___"),
    Pattern("pytest", Printed, Nothing, Any, r"", "5 failed in 3s"),
    Pattern("pytest", Any, Summary, Outside, r"^(?:=+ )?(?:no tests ran|[0-9]+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests passed)(?:, [0-9]+ [a-z ]+)*) in [.0-9]+s", "==== 3 failed, 5 passed, 1 skipped, 1 error in 0.43s ====="),
    Pattern("pytest", Any, Broken, Any, r"^!!!.* during collection", "!!!!!! Interrupted: 1 error during collection !!!!!!"),
    Pattern("pytest", Any, Nothing, Printed, r"^---+ Captured ", "------- Captured stdout call -------"),
    Pattern("pytest", List, Nothing, Running, r"^===", "=== FAILURES ==="),
    Pattern("pytest", List, Listed, Any, r"^(?:FAILED|ERROR) (?<name>\S*(?:\.py|::).*?)(?: -(?: .*)?)?$", "FAILED test_a.py::test_param[a b] - AssertionError: x - y"),
    Pattern("pytest", Outside, Listed, List, r"^(?:FAILED|ERROR) (?<name>\S+\.py::.*?)(?: -(?: .*)?)?$", "FAILED test_a.py::test_b - x"),
    Pattern("pytest", List, Listed, Any, r"^SUBFAIL.* (?<name>\S+\.py::\S+)", "SUBFAILED(i=1) test_a.py::TestC::test_sub - AssertionError: 1 != 0"),
    Pattern("pytest", List, Passed, Any, r"^(?:PASSED|XPASS) (?<name>\S*::.*?)(?: -(?: .*)?)?$", "PASSED test_a.py::test_b"),
    Pattern("pytest", Running, Passed, Any, r"^(?<name>[^\s\[]\S*::.*) (?:PASSED|XPASS)(?: +\[ *[0-9]+%\])?$", "test_a.py::test_param[a b] PASSED         [ 12%]"),
    Pattern("pytest", Running, Said, Any, r"^(?<name>[^\s\[]\S*::.*) (?:FAILED|ERROR)(?: +\[ *[0-9]+%\])?$", "test_a.py::test_b FAILED                   [ 12%]"),
    Pattern("pytest", Running, Passed, Any, r"^\[gw[0-9]+\] \[ *[0-9]+%\] (?:PASSED|XPASS) (?<name>\S*::.*)", "[gw0] [ 12%] PASSED test_a.py::test_b"),
    Pattern("pytest", Running, Said, Any, r"^\[gw[0-9]+\] \[ *[0-9]+%\] (?:FAILED|ERROR) (?<name>\S*::.*)", "[gw1] [ 25%] FAILED test_a.py::test_c"),

    Pattern("python -m unittest", Any, Nothing, List, r"^={70}$", "======================================================================"),
    Pattern("python -m unittest", List, Listed, Any, r"^(?:FAIL|ERROR): (?<name>\S+ \([\w.]+\))(?: .*)?$", "FAIL: test_adds (tests.test_cart.CartTest.test_adds)"),
    Pattern("python -m unittest", Any, Passed, Any, r"^(?<name>\S+ \([\w.]+\)) \.\.\. ok$", "test_holds (tests.test_cart.CartTest.test_holds) ... ok"),
    Pattern("python -m unittest", Any, Summary, List, r"^Ran [0-9]+ tests? in [.0-9]+s$", "Ran 2 tests in 0.001s"),
    Pattern("python -m unittest", List, More, Outside, r"^FAILED \([a-z ]+=[0-9]", "FAILED (failures=1, errors=1)"),

    Pattern("go test", Any, OnePassed, Any, r"--- PASS: (?<name>\S+) \([.0-9]+s\)$", "    --- PASS: TestTable/one (0.00s)"),
    Pattern("go test", Any, OneFailed, Any, r"--- FAIL: (?<name>\S+) \([.0-9]+s\)$", "printed--- FAIL: TestTable/two (0.00s)"),
    Pattern("go test", Any, PackageEnded, Any, r"^ok *\t(?<name>[^-\s]\S*)\t.*\[no tests to run\]$", "ok  \texample.com/x\t0.1s [no tests to run]"),
    Pattern("go test", Any, PackagePassed, Any, r"^ok *\t(?<name>[^-\s]\S*)\t\S", "ok  \texample.com/x\t0.1s"),
    Pattern("go test", Any, Broken, Any, r"^FAIL\t(?<name>[^-\s]\S*) \[.*failed\]$", "FAIL\texample.com/bad [build failed]"),
    Pattern("go test", Any, PartFailed, Any, r"^FAIL$", "FAIL"),
    Pattern("go test", Any, PackageFailed, Any, r"^FAIL\t(?<name>[^-\s]\S*)\t\S", "FAIL\texample.com/x\t0.1s"),
    Pattern("go test", Any, PackageEnded, Any, r"^\?\s+\t(?<name>\S+)\t\[no test files\]$", "?   \texample.com/x\t[no test files]"),
    Pattern("go test", Any, Broken, Any, r#"^\{.*"Action":"output","Package":"[^"]+","Output":".*\[build failed\]"#, r#"{"Action":"output","Package":"example.com/bad","Output":"FAIL\texample.com/bad [build failed]\n"}"#),
    Pattern("go test", Any, OnePassed, Any, r#"^\{.*"Action":"pass","Package":"(?<package>[^"]+)","Test":"(?<name>[^"]+)""#, r#"{"Time":"x","Action":"pass","Package":"m/a","Test":"TestX","Elapsed":0}"#),
    Pattern("go test", Any, OneFailed, Any, r#"^\{.*"Action":"fail","Package":"(?<package>[^"]+)","Test":"(?<name>[^"]+)""#, r#"{"Time":"x","Action":"fail","Package":"m/a","Test":"TestX","Elapsed":0}"#),
    Pattern("go test", Any, PackagePassed, Any, r#"^\{.*"Action":"pass","Package":"(?<name>[^"]+)","Elapsed""#, r#"{"Time":"x","Action":"pass","Package":"m/a","Elapsed":0.008}"#),
    Pattern("go test", Any, PackageFailed, Any, r#"^\{.*"Action":"fail","Package":"(?<name>[^"]+)","Elapsed""#, r#"{"Time":"x","Action":"fail","Package":"m/a","Elapsed":0.01,"FailedBuild":"m/a [m/a.test]"}"#),
    Pattern("go test", Any, PackageEnded, Any, r#"^\{.*"Action":"skip","Package":"(?<name>[^"]+)","Elapsed""#, r#"{"Time":"x","Action":"skip","Package":"m/a","Elapsed":0}"#),

    Pattern("jest", Any, FilePassed, Running, r"^ ?PASS +(?<name>\S.*\.[cm]?[jt]sx?)(?: \(.*)?$", "PASS ./basket.test.js (5.2 s)"),
    Pattern("jest", Any, FileFailed, Running, r"^ ?FAIL +(?<name>\S.*\.[cm]?[jt]sx?)(?: \(.*)?$", "FAIL t/a.test.tsx"),
    Pattern("jest", Any, Seen, Outside, r"^Test Suites: ", "Test Suites: 1 failed, 1 passed, 2 total"),
    Pattern("jest", Any, Summary, Outside, r"^Tests:  ", "Tests:       1 failed, 1 skipped, 3 passed, 5 total"),
    Pattern("jest", Any, Ended, Outside, r"^No tests found, exiting with code", "No tests found, exiting with code 1"),
    Pattern("jest", Any, Nothing, Printed, r"^  ● Console$", "  ● Console"),
    Pattern("jest", Any, Broken, Printed, r"^  ● Test suite failed to run$", "  ● Test suite failed to run"),
    Pattern("jest", Printed, Said, Any, r"^  ● (?<name>.+)$", "  ● outer › odd › fails > here"),
    Pattern("jest", Running, Said, Printed, r"^  ● (?<name>.+)$", "  ● pears add up"),
    Pattern("jest", Running, Tree, Any, r"^ +(?:[✓√] (?<passed>.+?)|[✕×] (?<failed>.+?)|[○✎] .+|(?<block>.+?))(?: \([.0-9]+ m?s\))?$", "    ✓ apples add up (2 ms)"),
    Pattern("jest", Running, Nothing, Printed, r"^", ""),

    Pattern("vitest", Any, Start, Running, r"^ *(?:RUN|DEV) +v[0-9]", " RUN  v4.1.12 /home/ada/vt"),
    Pattern("vitest", Any, Seen, List, r"^ *Test Files  ", " Test Files  1 failed | 1 passed (2)"),
    Pattern("vitest", List, Summary, Outside, r"^ *Tests  ", "      Tests  1 failed | 3 passed | 1 skipped (5)"),
    Pattern("vitest", Any, Ended, Any, r"^ *No test files found, exiting with code", "No test files found, exiting with code 1"),
    Pattern("vitest", Running, Said, Any, r"^ *FAIL  (?<name>.+ > .+)$", " FAIL  orchard.test.js > orchard > pears add up"),
    Pattern("vitest", Outside, Said, Running, r"^ *FAIL  (?<name>(?:\|[^|]+\| )?\S+\.[cm]?[jt]sx? > .+)$", " FAIL  orchard.test.js > orchard > pears add up"),
    Pattern("vitest", Running, Broken, Any, r"^ *FAIL  (?<name>.+?) \[ ", " FAIL  bad.test.js [ bad.test.js ]"),
    Pattern("vitest", Running, FilePassed, Any, r"^ *[✓√] (?<name>(?:\|[^|]+\| )?\S+\.[cm]?[jt]sx?) \(", " ✓ basket.test.js (1 test) 4ms"),
    Pattern("vitest", Running, Passed, Any, r"^ *[✓√] (?<name>(?:\|[^|]+\| )?\S+\.[cm]?[jt]sx? > .+?)(?: [.0-9]+m?s)?$", " ✓ orchard.test.js > orchard > apples add up 1ms"),
    Pattern("vitest", Running, Said, Any, r"^ *× (?<name>(?:\|[^|]+\| )?\S+\.[cm]?[jt]sx? > .+?)(?: [.0-9]+m?s)?$", " × orchard.test.js > orchard > pears add up 4ms"),

    Pattern("mocha", Any, Summary, List, r"^ +[0-9]+ passing \([.0-9]+(?:m?s|m|h)\)$", "  3 passing (12ms)"),
    Pattern("mocha", List, More, Any, r"^ +[0-9]+ failing$", "  1 failing"),

    Pattern("node --test", Any, Summary, List, r"^(?:#|ℹ) tests [0-9]+$", "# tests 4"),
    Pattern("node --test", List, More, Any, r"^(?:#|ℹ) (?:pass|fail) [0-9]+$", "ℹ fail 1"),
    Pattern("node --test", Any, Passed, Any, r"^ *(?:ok [0-9]+ - (?<name>.+)|✔ (?<spec>.+) \([.0-9]+ms\))$", "ok 1 - adds"),
    Pattern("node --test", Any, Said, Any, r"^ *(?:not ok [0-9]+ - (?<name>.+)|✖ (?<spec>.+) \([.0-9]+ms\))$", "✖ adds (0.7ms)"),

    Pattern("rspec", Any, Summary, Outside, r"^[0-9]+ examples?, [0-9]+ failures?", "3 examples, 1 failure"),
    Pattern("rspec", Any, Listed, Any, r"^rspec (?<name>\S+) # ", "rspec ./spec/a_spec.rb:5 # Basket holds"),

    Pattern("phpunit", Any, Summary, Outside, r"^(?:OK \([0-9]+ tests?, |Tests: [0-9]+, Assertions: )", "Tests: 3, Assertions: 3, Failures: 1."),
    Pattern("phpunit", Any, Nothing, Outside, r"^There (?:was|were) [0-9]+ (?:failure|error)s?:$", "There were 2 failures:"),
    Pattern("phpunit", Any, Nothing, Printed, r"^(?:There (?:was|were) [0-9]+ .+:|[0-9]+ tests? triggered .+:)$", "There was 1 risky test:"),
    Pattern("phpunit", Outside, Said, Any, r"^[0-9]+\) (?<name>\S+::\S+)", "1) Tests\\BasketTest::testHolds"),

    Pattern("dotnet test", Any, Summary, Outside, r"^(?:Passed|Failed)! +- Failed: +[0-9]+, Passed: ", "Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3, Duration: 25 ms - a.dll (net8.0)"),
    Pattern("dotnet test", Any, Passed, Any, r"^ +Passed (?<name>\S.*) \[[^\]]+s\]$", "  Passed Basket.Tests.Holds [3 ms]"),
    Pattern("dotnet test", Any, Said, Any, r"^ +Failed (?<name>\S.*) \[[^\]]+s\]$", "  Failed Basket.Tests.Adds [< 1 ms]"),

    Pattern("mix test", Any, Summary, Outside, r"^(?:[0-9]+ (?:doctests?|properties|property), )*[0-9]+ tests?, [0-9]+ failures?", "2 doctests, 5 tests, 1 failure"),
    Pattern("mix test", Any, Said, Any, r"^ +[0-9]+\) (?:test|doctest|property) (?<name>.+ \(\S+\))$", "  1) test adds (Basket.HoldsTest)"),

    Pattern("mvn test", Any, Broken, Any, r"^\[ERROR\] COMPILATION ERROR", "[ERROR] COMPILATION ERROR : "),
    Pattern("mvn test", Any, Summary, Any, r"^(?:\[\w+\] )?Tests run: [0-9]+, Failures: [0-9]+, Errors: [0-9]+, Skipped: [0-9]+$", "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0"),
    Pattern("mvn test", Any, FilePassed, Any, r"^(?:\[INFO\] )?Tests run: [0-9]+, Failures: 0, Errors: 0, .* in (?:class )?(?<name>\S+)$", "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s -- in com.acme.AppTest"),
    Pattern("mvn test", Any, Said, Any, r"^(?:\[ERROR\] )?(?<name>\S+) +(?:-- )?Time elapsed: \S+ s(?:ec)? +<<< (?:FAILURE|ERROR)!", "[ERROR] com.acme.AppTest.adds -- Time elapsed: 0.004 s <<< FAILURE!"),

    Pattern("gradle test", Any, Broken, Any, r"^Execution failed for task ':.*compile\w*Test", "Execution failed for task ':app:compileTestJava'."),
    Pattern("gradle test", Any, Passed, Any, r"^(?<name>[^>\s]\S* > .+) PASSED$", "AppTest > holds() PASSED"),
    Pattern("gradle test", Any, Said, Any, r"^(?<name>[^>\s]\S* > .+) FAILED$", "AppTest > adds() FAILED"),
    Pattern("gradle test", Any, Summary, Any, r"^[0-9]+ tests? completed, [0-9]+ failed", "2 tests completed, 1 failed"),
    Pattern("gradle test", Any, Ended, Any, r"^BUILD SUCCESSFUL in ", "BUILD SUCCESSFUL in 2s"),

    Pattern("sbt test", Any, Summary, Any, r"^\[\w+\] Tests: succeeded [0-9]+, failed [0-9]+", "[info] Tests: succeeded 2, failed 1, canceled 0, ignored 0, pending 0"),
    Pattern("sbt test", Any, Said, Any, r"^\[\w+\] +- (?<name>.+) \*\*\* FAILED \*\*\*", "[info] - adds up *** FAILED *** (3 milliseconds)"),

    Pattern("swift test", Any, Passed, Any, r"^Test Case '(?:-\[)?(?<name>.+?)\]?' passed \(", "Test Case 'CartTests.testHolds' passed (0.001 seconds)"),
    Pattern("swift test", Any, Said, Any, r"^Test Case '(?:-\[)?(?<name>.+?)\]?' failed \(", "Test Case '-[CartTests.CartTests testAdds]' failed (0.002 seconds)."),
    Pattern("swift test", Any, Seen, List, r"^Test Suite '(?:All|Selected) tests' (?:passed|failed) at", "Test Suite 'All tests' failed at 2026-11-20 10:00:00.000"),
    Pattern("swift test", List, Summary, Outside, r"^\s+Executed [0-9]+ tests?, with [0-9]+ failures? ", "\t Executed 2 tests, with 1 failure (0 unexpected) in 0.003 (0.003) seconds"),
    Pattern("swift test", Any, Summary, Any, r"^. Test run with [1-9][0-9]* tests?.* passed after ", "✔ Test run with 2 tests passed after 0.001 seconds."),
    Pattern("swift test", Any, Ended, Any, r"^. Test run with [0-9]+ tests?.* failed after ", "✘ Test run with 2 tests failed after 0.001 seconds with 1 issue."),
    Pattern("swift test", Any, Passed, Any, r"^\S Test (?<name>.+) passed after ", "✔ Test holds() passed after 0.001 seconds."),
    Pattern("swift test", Any, Said, Any, r"^\S Test (?<name>.+) failed after ", "✘ Test adds() failed after 0.001 seconds with 1 issue."),

    Pattern("deno test", Any, Start, Running, r"^running [0-9]+ tests? from ", "running 2 tests from ./cart_test.ts"),
    Pattern("deno test", Any, Summary, Outside, r"^(?:ok|FAILED) \| [0-9]+ passed.* \| [0-9]+ failed", "FAILED | 1 passed | 1 failed (10ms)"),
    Pattern("deno test", Running, Passed, Any, r"^(?<name>\S.*) \.\.\. ok(?: \(.*\))?$", "adds ... ok (1ms)"),
    Pattern("deno test", Any, Listed, Any, r"^(?<name>\S.*) => \S+:[0-9]+:[0-9]+$", "adds => ./cart_test.ts:5:6"),

    Pattern("bun test", Any, Start, Running, r"^bun test v[0-9]", "bun test v1.2.0 (b0d2e1)"),
    Pattern("bun test", Running, Passed, Any, r"^ *(?:✓|\(pass\)) (?<name>.+?)(?: \[[.0-9]+m?s\])?$", "✓ cart > holds [0.10ms]"),
    Pattern("bun test", Any, Said, Any, r"^ *(?:✗|\(fail\)) (?<name>.+?)(?: \[[.0-9]+m?s\])?$", "(fail) cart > adds [0.20ms]"),
    Pattern("bun test", Any, More, List, r"^ +[0-9]+ (?:pass|fail)$", " 1 fail"),
    Pattern("bun test", Any, Summary, Outside, r"^Ran [0-9]+ tests? across [0-9]+ files?", "Ran 2 tests across 1 file. [15.00ms]"),

    Pattern("flutter test", Any, Ended, Any, r"^[0-9:]+ \+[0-9]+(?: ~[0-9]+)?(?: -[0-9]+)?: (?:All tests passed!|Some tests failed\.)$", "00:01 +1 -1: Some tests failed."),
    Pattern("flutter test", Any, Said, Any, r"^[0-9:]+ \+[0-9]+(?: ~[0-9]+)? -[0-9]+: (?<name>.+) \[E\]$", "00:01 +1 -1: cart adds [E]"),

    Pattern("rails test", Any, Summary, Any, r"^[0-9]+ runs, [0-9]+ assertions, [0-9]+ failures, ", "3 runs, 5 assertions, 1 failures, 0 errors, 0 skips"),
    Pattern("rails test", Any, Listed, Any, r"^(?:bin/)?rails test (?<name>\S+:[0-9]+)$", "bin/rails test test/models/cart_test.rb:5"),

    Pattern("ctest", Any, Passed, Any, r"^ *[0-9]+/[0-9]+ Test +#[0-9]+: (?<name>\S+) \.+ +Passed ", "1/2 Test #1: holds ............................   Passed    0.01 sec"),
    Pattern("ctest", Any, Said, Any, r"^ *[0-9]+/[0-9]+ Test +#[0-9]+: (?<name>\S+) \.+ *\*\*\*", "2/2 Test #2: adds .............................***Failed    0.01 sec"),
    Pattern("ctest", Any, Ended, Any, r"^[0-9]+% tests passed, [0-9]+ tests? failed out of ", "50% tests passed, 1 tests failed out of 2"),
    Pattern("ctest", Any, Listed, Any, r"^\s+[0-9]+ - (?<name>\S+) \((?:Failed|Timeout|SEGFAULT|Not Run|Subprocess aborted)\)", "\t  2 - adds (Failed)"),

    Pattern("bazel test", Any, Broken, Any, r"^(?<name>(?:@\S+)?//\S+) +FAILED TO BUILD$", "//cart:adds                    FAILED TO BUILD"),
    Pattern("bazel test", Any, PassedAfterAll, Any, r"^(?<name>(?:@\S+)?//\S+) +(?:\(cached\) )?(?:PASSED|FLAKY, passed) in ", "//cart:holds                   (cached) PASSED in 0.5s"),
    Pattern("bazel test", Any, Said, Any, r"^(?<name>(?:@\S+)?//\S+) +(?:FAILED|TIMEOUT|REMOTE FAILED) in ", "//cart:adds                    FAILED in 0.4s"),
    Pattern("bazel test", Any, Ended, Any, r"^Executed [0-9]+ out of [0-9]+ tests?: ", "Executed 2 out of 2 tests: 1 test passes and 1 fails locally."),

    Pattern("phpunit", Any, Summary, Any, r"^ +Tests: +[0-9]+ .*\([0-9]+ assertions?\)$", "  Tests:    1 failed, 2 passed (3 assertions)"),
    Pattern("phpunit", Any, Said, Any, r"^ +FAILED +(?<name>\S+ > .+?)(?:  .*)?$", "   FAILED  Tests\\Unit\\CartTest > it adds"),
    Pattern("dotnet test", Any, Summary, Any, r"^Test summary: total: ", "Test summary: total: 3, failed: 1, succeeded: 2, skipped: 0, duration: 1.2s"),
    Pattern("dotnet test", Any, Said, Any, r"^ +(?<name>[\w.]+(?:\(.*?\))?) \([.0-9]+ ?m?s\): Error Message", "      Basket.Tests.Adds (18ms): Error Message: Assert.Equal() Failure"),
    Pattern("mocha", Outside, Passed, Any, r"^ +[✓✔] (?<name>.+?)(?: \([0-9]+ms\))?$", "    ✔ holds (2ms)"),
    Pattern("mocha", Outside, Said, Any, r"^ +[0-9]+\) (?<name>.+)$", "    1) adds"),
];
