use std::{fmt::Write as _, fs, path::PathBuf};

use proptest::prelude::*;

use super::{table::Meaning, *};

fn fixtures() -> Vec<(String, String)> {
    let directory =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/breakpoint/test_run/fixtures");
    let mut found: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() > 35, "{} fixtures", found.len());
    found
}

fn fixture(name: &str) -> String {
    let found = fixtures().into_iter().find(|(have, _)| have == name);
    found.unwrap().1
}

fn shown(outcome: &TestOutcome) -> String {
    let mut text = outcome.runner.to_owned();
    for (is, word) in [
        (outcome.built, "built"),
        (outcome.complete, "complete"),
        (outcome.is_success(), "success"),
        (outcome.is_failure(), "failure"),
    ] {
        if is {
            write!(text, " {word}").unwrap();
        }
    }
    let count = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    write!(
        text,
        " passed={} failed={}",
        count(outcome.passed),
        count(outcome.failed)
    )
    .unwrap();
    for (word, names) in [
        ("+", &outcome.passing),
        ("-", &outcome.failing),
        ("=", &outcome.passing_groups),
    ] {
        for name in names {
            write!(text, "\n  {word} {name}").unwrap();
        }
    }
    text
}

#[test]
fn real_output_of_every_runner_is_recognised() {
    let mut text = String::new();
    for (name, output) in fixtures() {
        writeln!(text, "# {name}").unwrap();
        for outcome in recognise_runs(None, &output) {
            writeln!(text, "{}", shown(&outcome)).unwrap();
        }
        text.push('\n');
    }
    insta::with_settings!({snapshot_path => ".", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("test_runs", text);
    });
}

#[test]
fn colours_do_not_change_what_is_recognised() {
    for (plain, coloured) in [
        ("cargo-plain", "cargo-coloured"),
        ("jest-verbose", "jest-verbose-coloured"),
        ("vitest-verbose", "vitest-verbose-coloured"),
    ] {
        let [plain, coloured] = [plain, coloured].map(|name| {
            let found = recognise_runs(None, &fixture(name));
            found.iter().map(shown).collect::<Vec<_>>()
        });
        assert_eq!(plain, coloured);
    }
}

#[test]
fn output_cut_anywhere_never_invents_a_failure_or_a_success() {
    for (name, output) in fixtures() {
        let whole = recognise_runs(None, &output);
        for cut in (0..output.len()).filter(|cut| output.is_char_boundary(*cut)) {
            if cut % 7 != 0 {
                continue;
            }
            for outcome in recognise_runs(None, &output[..cut]) {
                let full = whole.iter().find(|one| one.runner == outcome.runner);
                // The start of a broken build can look like the runner below it.
                let Some(full) = full else { continue };
                for failing in &outcome.failing {
                    // A package before a name may still be missing, or the time after it be cut.
                    let known = full.failing.iter().any(|have| {
                        have.contains(failing.as_str()) || failing.contains(have.as_str())
                    });
                    let by_a_test = failing == "talk::in_stdout";
                    assert!(known || by_a_test, "{name} cut at {cut}: {failing}");
                }
                let _ = recognise_runs(None, &output[cut..]);
            }
        }
    }
}

#[test]
fn a_log_that_is_only_shown_is_no_test_run() {
    let output =
        "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    assert!(recognise_runs(Some("cat test.log"), output).is_empty());
    assert!(recognise_runs(Some("cd x && git show HEAD | head -20"), output).is_empty());
    assert_eq!(
        recognise_runs(Some("cargo test 2>&1 | tail -5"), output).len(),
        1
    );
    assert_eq!(recognise_runs(None, output).len(), 1);
    assert!(recognise_runs(None, "test results are fine: 3 passed\nTests: none\n").is_empty());
}

#[test]
fn several_runs_in_one_output_are_distinguished() {
    let both = format!(
        "{}\n{}\n{}",
        fixture("nextest-plain"),
        fixture("cargo-passed"),
        fixture("jest-plain")
    );
    let runners: Vec<_> = recognise_runs(None, &both)
        .iter()
        .map(|one| one.runner)
        .collect();
    assert_eq!(runners, ["cargo nextest", "cargo test", "jest"]);
}

#[test]
fn a_filter_or_a_path_makes_a_run_partial() {
    for (runner, line, all) in [
        ("cargo test", "cargo test", true),
        (
            "cargo test",
            "cd x && cargo test --workspace 2>&1 | tail -40",
            true,
        ),
        ("cargo test", "cargo test > out.txt 2>&1", true),
        ("pytest", "pytest -q >'my log.txt' </dev/null", true),
        ("jest", "npm test &> 'out.log'", true),
        ("cargo test", "cargo test parser", false),
        ("cargo test", "cargo test --test it", false),
        ("cargo nextest", "cargo nextest run", true),
        ("cargo nextest", "cargo nextest run -E 'test(a)'", false),
        ("pytest", "python3 -m pytest -q", true),
        ("pytest", "pytest tests/test_a.py", false),
        ("pytest", "pytest -k a", false),
        ("pytest", "pytest --ignore=tests/e2e -q", false),
        ("pytest", "pytest --deselect=tests/test_a.py::test_b", false),
        ("cargo test", "cargo test --workspace --exclude web", false),
        ("go test", "go test -skip=TestX ./...", false),
        ("jest", "npm test -- --testPathIgnorePatterns=e2e", false),
        ("pytest", "tox", true),
        ("pytest", "tox -e py312", false),
        ("phpunit", "composer test", true),
        ("mvn test", "./mvnw -q verify", true),
        ("mvn test", "mvn test -Dtest=CartTest", false),
        ("gradle test", "./gradlew build -x test", false),
        ("gradle test", "gradle assemble", false),
        ("ctest", "ctest --test-dir build -j 8", true),
        ("ctest", "ctest -R cart", false),
        ("bazel test", "bazelisk test //...", true),
        ("go test", "go test ./...", true),
        ("go test", "go test -run TestX ./...", false),
        ("go test", "go test ./pkg", false),
        ("jest", "npx jest", true),
        ("jest", "npm test", true),
        ("jest", "npx jest a.test.js", false),
        ("vitest", "npx vitest run", true),
        ("vitest", "npx vitest run -t name", false),
        // A flag's value and what a script hands on select nothing.
        ("pytest", "pytest -x -q", true),
        ("pytest", "pytest -n auto --tb short", true),
        ("pytest", "pytest --tb short tests/test_a.py", false),
        ("go test", "go test -timeout 60s ./...", true),
        ("dotnet test", "dotnet test -c Release --logger trx", true),
        ("vitest", "npx vitest run --reporter dot", true),
        ("vitest", "npm test -- --run", true),
        ("jest", "yarn test --watchAll=false", true),
        ("jest", "npm run test:ci -- --coverage", true),
        ("jest", "npm test -- -t adds", false),
        ("jest", "npm test -- a.test.js", false),
        ("python -m unittest", "python manage.py test", true),
        ("python -m unittest", "python manage.py test shop", false),
        ("gradle test", "./gradlew clean", false),
        ("gradle test", "./gradlew clean build --console plain", true),
        ("cargo test", "", false),
    ] {
        let row = ROWS.iter().find(|row| row.word == runner).unwrap();
        let (_, scope) = place_of_runs(
            &runs_of(&command::read_commands(line, None), row),
            row,
            false,
        );
        assert_eq!(scope == Scope::All, all, "{line}");
    }
}

#[test]
fn a_run_counts_once_it_has_ended() {
    let of = |output: &str| {
        let total = sum_up(&recognise_runs(None, output));
        total.map(|total| (total.passed, total.count, total.failed))
    };
    assert_eq!(of("running 2 tests\n"), None);
    assert_eq!(
        of("running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored\n"),
        Some((true, Some(2), Some(0)))
    );
    assert_eq!(
        of("running 2 tests\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n"),
        Some((false, Some(2), Some(1)))
    );
    assert_eq!(of("ok  \tm/a\t0.1s [no tests to run]\n"), None);
}

#[test]
fn names_are_bounded_and_clean() {
    let long = "x".repeat(10_000);
    let mut text = format!("running 9999 tests\ntest {long} ... ok\ntest a\u{202e}b ... FAILED\n");
    for n in 0..5_000 {
        writeln!(text, "test t{n} ... ok").unwrap();
    }
    let outcome = &recognise_runs(None, &text)[0];
    assert!(outcome.passing.len() <= NAMES_CAP && outcome.passing[0].len() == NAME_CAP);
    assert_eq!(outcome.failing, ["a\\u{202e}b"]);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(running |[0-9]| tests?|\ntest |test result: |ok|FAILED|\\. |; | passed| failed|failures:\n|    | --- FAIL: |\\(0\\.0s\\)|\t|ok  \t|=== |in 1s|\\[gw0\\] |\\] | PASSED | FAIL  |PASS \\[|Summary \\[|s\\]| run: |  ● |✓|✕|×| > |a\\.js|Tests:  |RUN v|Test Files  |\n|é|\x1b\\[1m|\\{\"Action\":){0,60}") {
        let _ = recognise_runs(None, &text);
    }

    #[test]
    fn no_bytes_make_it_panic(text in any::<String>(), at in 0usize..40, cut in 0usize..2000) {
        let mut fixture = fixtures().swap_remove(at % 36).1;
        let cut = fixture.floor_char_boundary(cut.min(fixture.len()));
        fixture.insert_str(cut, &text);
        let _ = recognise_runs(Some(&text), &fixture);
    }
}

#[test]
fn every_pattern_fits_its_example_and_no_other_row_is_without_one() {
    for (at, pattern) in table::PATTERNS.iter().enumerate() {
        let regex = regex::Regex::new(pattern.4).unwrap();
        let groups = regex.captures(pattern.5);
        let groups = groups.unwrap_or_else(|| panic!("{} does not fit {:?}", pattern.4, pattern.5));
        let name = |group| {
            groups
                .name(group)
                .is_some_and(|name| name.as_str().trim() == name.as_str())
        };
        let named = ["name", "spec", "passed"].into_iter().any(name);
        let needs = matches!(
            pattern.2,
            Meaning::Passed
                | Meaning::Said
                | Meaning::Listed
                | Meaning::OneFailed
                | Meaning::PackageFailed
        );
        assert!(named || !needs, "{}", pattern.4);
        // An earlier pattern of the same runner and part would take its line.
        let mut before = table::PATTERNS[..at]
            .iter()
            .filter(|one| one.0 == pattern.0);
        let taken = before.any(|one| {
            (one.1 == pattern.1 || one.1 == table::Part::Any)
                && regex::Regex::new(one.4).unwrap().is_match(pattern.5)
        });
        assert!(!taken, "{} comes too late for {:?}", pattern.4, pattern.5);
    }
    for row in &ROWS {
        let ends = |one: &&table::Pattern| {
            one.0 == row.word
                && matches!(
                    one.2,
                    Meaning::Summary | Meaning::PackagePassed | Meaning::Ended
                )
        };
        assert!(table::PATTERNS.iter().any(|one| ends(&one)), "{}", row.word);
    }
}

/// Runs of which there is no recording, by the documentation of their runners: command, output, and what is read in it.
#[rustfmt::skip]
const DOCUMENTED: &[(&str, &str, &str)] = &[
        (
            "vendor/bin/phpunit",
            "There was 1 risky test:\n\n1) T\\ATest::testB\nThis test did not perform any assertions\n\nOK, but there were issues!\nTests: 3, Assertions: 2, Risky: 1.\n",
            "phpunit 3 0 []",
        ),
        (
            "vendor/bin/phpunit",
            "1 test triggered 1 PHPUnit deprecation:\n\n1) T\\ATest::testB\nMetadata in doc-comments\n\nOK, but there were issues!\nTests: 3, Assertions: 3, PHPUnit Deprecations: 1.\n",
            "phpunit 3 0 []",
        ),
        (
            "vendor/bin/phpunit",
            "There was 1 failure:\n\n1) T\\ATest::testA\nFailed asserting\n\n--\n\nThere were 2 skipped tests:\n\n1) T\\ATest::testC\n\n2) T\\ATest::testD\n\nFAILURES!\nTests: 4, Assertions: 2, Failures: 1, Skipped: 2.\n",
            r#"phpunit 3 1 ["T\\ATest::testA"]"#,
        ),
        ("npm test", "\n  3 passing (2m)\n", "mocha 3 0 []"),
        (
            "npx vitest run",
            " RUN  v3.2.4 /p\n\n ✓ |web| src/b.test.ts (2 tests) 4ms\n\n FAIL  |web| src/a.test.ts > cart > adds up\nAssertionError: x\n\n Test Files  1 failed | 1 passed (2)\n      Tests  1 failed | 2 passed (3)\n",
            r#"vitest 2 1 ["|web| src/a.test.ts > cart > adds up"]"#,
        ),
        (
            "npx mocha",
            "  Basket\n    ✔ holds\n    1) adds\n\n  1 passing (12ms)\n  1 failing\n\n  1) Basket\n       adds:\n",
            r#"mocha 1 1 ["adds"]"#,
        ),
        (
            "./mvnw -B verify",
            "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s -- in com.acme.BagTest\n[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE! -- in com.acme.CartTest\n[ERROR] com.acme.CartTest.adds -- Time elapsed: 0.004 s <<< FAILURE!\n[INFO] Results:\n[ERROR] Failures: \n[ERROR]   CartTest.adds:15 expected: <1> but was: <2>\n[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE\n",
            r#"mvn test 3 1 ["com.acme.CartTest.adds"]"#,
        ),
        (
            "./gradlew test",
            "> Task :test FAILED\n\nCartTest > adds() FAILED\n    AssertionFailedError at CartTest.java:12\n\n2 tests completed, 1 failed\n\nBUILD FAILED in 3s\n",
            r#"gradle test 1 1 ["CartTest > adds()"]"#,
        ),
        (
            "gradle check",
            "\nBUILD SUCCESSFUL in 2s\n",
            "gradle test ? ? []",
        ),
        (
            "sbt test",
            "[info] - holds\n[info] - adds up *** FAILED ***\n[info] Tests: succeeded 1, failed 1, canceled 0, ignored 0, pending 0\n[error] Failed tests:\n",
            r#"sbt test 1 1 ["adds up"]"#,
        ),
        (
            "swift test",
            "Test Suite 'All tests' started at 2026-11-20\nTest Case 'CartTests.testHolds' passed (0.001 seconds)\nTest Case 'CartTests.testAdds' failed (0.002 seconds)\nTest Suite 'CartTests' failed at 2026-11-20\n\t Executed 2 tests, with 1 failure (0 unexpected) in 0.003 (0.003) seconds\nTest Suite 'All tests' failed at 2026-11-20\n\t Executed 2 tests, with 1 failure (0 unexpected) in 0.003 (0.003) seconds\n",
            r#"swift test 1 1 ["CartTests.testAdds"]"#,
        ),
        (
            "swift test",
            "✔ Test holds() passed after 0.001 seconds.\n✔ Test run with 1 test in 1 suite passed after 0.001 seconds.\n",
            "swift test 1 0 []",
        ),
        (
            "deno test",
            "running 2 tests from ./cart_test.ts\nholds ... ok (0ms)\nadds ... FAILED (1ms)\n\n FAILURES \n\nadds => ./cart_test.ts:5:6\n\nFAILED | 1 passed | 1 failed (10ms)\n",
            r#"deno test 1 1 ["adds"]"#,
        ),
        (
            "bun test",
            "bun test v1.2.0 (b0d2)\n\ncart.test.ts:\n✓ holds [0.10ms]\n✗ adds [0.20ms]\n\n 1 pass\n 1 fail\n 2 expect() calls\nRan 2 tests across 1 file. [15.00ms]\n",
            r#"bun test 1 1 ["adds"]"#,
        ),
        (
            "flutter test",
            "00:01 +1 -1: cart adds [E]\n  Expected: <1>\n00:01 +1 -1: Some tests failed.\n",
            r#"flutter test ? ? ["cart adds"]"#,
        ),
        (
            "bin/rails test",
            "F\n\nFailure:\nCartTest#test_adds [test/models/cart_test.rb:7]:\n\nbin/rails test test/models/cart_test.rb:5\n\n3 runs, 5 assertions, 1 failures, 0 errors, 0 skips\n",
            r#"rails test 2 1 ["test/models/cart_test.rb:5"]"#,
        ),
        (
            "ctest --test-dir build",
            "1/2 Test #1: holds ............   Passed    0.01 sec\n2/2 Test #2: adds .............***Failed    0.01 sec\n\n50% tests passed, 1 tests failed out of 2\n\nThe following tests FAILED:\n\t  2 - adds (Failed)\n",
            r#"ctest ? ? ["adds"]"#,
        ),
        (
            "bazel test //...",
            "//cart:holds          (cached) PASSED in 0.5s\n//cart:adds           FAILED in 0.4s\n  /root/.cache/test.log\n\nExecuted 1 out of 2 tests: 1 test passes and 1 fails locally.\n",
            r#"bazel test ? ? ["//cart:adds"]"#,
        ),
        (
            "./vendor/bin/pest",
            "   FAIL  Tests\\CartTest\n  ✓ it holds\n  ⨯ it adds\n  ──────\n   FAILED  Tests\\CartTest > it adds\n\n  Tests:    1 failed, 2 passed (3 assertions)\n",
            r#"phpunit 2 1 ["Tests\\CartTest > it adds"]"#,
        ),
        (
            "dotnet test",
            "      Basket.Tests.Adds (18ms): Error Message: Assert.Equal() Failure\n\nTest summary: total: 3, failed: 1, succeeded: 2, skipped: 0, duration: 1.2s\n",
            r#"dotnet test 2 1 ["Basket.Tests.Adds"]"#,
        ),
        ("npm test", "\n  3 passing (1s)\n", "mocha 3 0 []"),
        (
            "node --test",
            "TAP version 13\nok 1 - holds\nnot ok 2 - adds\n1..2\n# tests 2\n# suites 0\n# pass 1\n# fail 1\n",
            r#"node --test 1 1 ["adds"]"#,
        ),
        (
            "node --test",
            "✔ holds (0.7ms)\n✖ adds (1.2ms)\nℹ tests 2\nℹ suites 0\nℹ pass 1\nℹ fail 1\n",
            r#"node --test 1 1 ["adds"]"#,
        ),
        (
            "bundle exec rspec",
            "..F\n\nFinished in 0.01 seconds\n3 examples, 1 failure\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:5 # Basket holds\n",
            r#"rspec 2 1 ["./spec/a_spec.rb:5"]"#,
        ),
        (
            "vendor/bin/phpunit",
            "There was 1 failure:\n\n1) T\\ATest::testB\nFailed asserting\n\nFAILURES!\nTests: 3, Assertions: 3, Failures: 1.\n",
            r#"phpunit 2 1 ["T\\ATest::testB"]"#,
        ),
        (
            "vendor/bin/phpunit",
            "OK (3 tests, 5 assertions)\n",
            "phpunit 3 0 []",
        ),
        (
            "dotnet test",
            "  Failed A.B [3 ms]\nFailed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3, Duration: 25 ms - a.dll (net8.0)\n",
            r#"dotnet test 2 1 ["A.B"]"#,
        ),
        (
            "mix test",
            "  1) test adds (BasketTest)\n     test/a_test.exs:5\n\nFinished in 0.02 seconds\n2 doctests, 5 tests, 1 failure\n",
            r#"mix test 6 1 ["adds (BasketTest)"]"#,
        ),
];

#[test]
fn runners_of_which_there_is_no_recording_are_recognised_by_their_documented_output() {
    for (command, output, expected) in DOCUMENTED {
        let found = recognise_runs(Some(command), output);
        assert_eq!(found.len(), 1, "{output}: {found:?}");
        let one = &found[0];
        let [passed, failed] = [one.passed, one.failed]
            .map(|count| count.map_or("?".to_owned(), |count| count.to_string()));
        let described = format!("{} {passed} {failed} {:?}", one.runner, one.failing);
        assert_eq!(described, *expected, "{output}");
        assert_eq!((one.whole, one.complete), (true, true), "{command}");
    }
}

#[test]
fn two_runs_of_a_runner_in_one_command_have_each_their_directory() {
    let failed =
        "=== short test summary info ===\nFAILED test_a.py::test_x - E\n1 failed in 0.1s\n";
    let passed = "3 passed in 0.1s\n";
    let jest = |verdict: &str| {
        format!(
            "{verdict} ./a.test.js\n\nTest Suites: 1 total\nTests:       1 {}, 1 total\n",
            if verdict == "PASS" {
                "passed"
            } else {
                "failed"
            }
        )
    };
    let cargo = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    for (command, output, expected) in [
        (
            "cd api && pytest -q; cd ../web && pytest -q",
            [failed, passed].concat(),
            &[(Some("/p/api"), false), (Some("/p/web"), true)][..],
        ),
        (
            "npm --prefix a test && npm --prefix b test",
            jest("PASS") + &jest("FAIL"),
            &[(Some("/p/a"), true), (Some("/p/b"), false)],
        ),
        (
            "pytest a; pytest -q",
            [failed, passed].concat(),
            &[(Some("/p"), false), (Some("/p"), true)],
        ),
        // One of the two left no result, or their output does not show where the second begins.
        (
            "cd api && pytest -q; cd ../web && pytest -q",
            failed.to_owned(),
            &[(None, false)],
        ),
        (
            "(cd a; cargo test); (cd b; cargo test)",
            cargo.repeat(2),
            &[(None, true)],
        ),
    ] {
        let found = Shell::in_p(command, false).recognise_runs(&output);
        let asked: Vec<_> = found
            .iter()
            .map(|one| (one.owner.directory.as_deref(), one.is_success()))
            .collect();
        assert_eq!(asked, expected, "{command}");
    }
}

#[test]
fn a_command_line_alone_may_show_whose_tests_it_runs() {
    for (command, runner, place, whole) in [
        ("cargo test", "cargo test", "/p", true),
        ("cargo +nightly test --release", "cargo test", "/p", true),
        (
            "cd api && cargo nextest run",
            "cargo nextest",
            "/p/api",
            true,
        ),
        (
            "pitstop test -- go -C x test ./...",
            "go test",
            "/p/x",
            true,
        ),
        (
            "cd sub && python3 -m pytest -q a.py",
            "pytest",
            "/p/sub",
            false,
        ),
        ("go test -run TestParse", "go test", "/p", false),
        // The command could belong to any runner, and installing a runner is not a run of it.
        ("npm test", "", "/p", false),
        ("make test", "", "/p", false),
        ("pip install pytest && make check", "", "/p", false),
        ("cargo test; go test ./...", "", "/p", false),
    ] {
        let (owner, all) = owner_of(command, None, Some("/p"));
        let found = (owner.runner.as_str(), owner.directory.as_deref(), all);
        assert_eq!(found, (runner, Some(place), whole), "{command}");
        assert_eq!(owner.command.is_some(), runner.is_empty(), "{command}");
    }
    let (owner, whole) = owner_of("npm test", Some("jest"), Some("/p"));
    assert_eq!(
        (owner.runner.as_str(), owner.command, whole),
        ("jest", None, true)
    );
    let (owner, _) = owner_of("cargo test", None, None);
    assert_eq!(
        (owner.directory, owner.command.as_deref()),
        (None, Some("cargo test"))
    );
}

#[test]
fn a_failed_command_has_no_run_that_passed_unless_another_one_failed() {
    let passed =
        "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    let failed = "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n";
    let run = |command: &str, output: &str, failed: bool| {
        let found = Shell::in_p(command, failed).recognise_runs(output);
        let whole = found.iter().any(|one| one.whole && one.is_success());
        (sum_up(&found).map(|total| total.passed), whole)
    };
    assert_eq!(run("cargo test", passed, false), (Some(true), true));
    for command in ["cargo test", "cargo test && ./lint", "./ci.sh; exit 3"] {
        assert_eq!(run(command, passed, true), (None, false), "{command}");
    }
    let both = format!("{passed}{failed}");
    assert_eq!(
        run("cargo test && go test ./...", &both, true),
        (Some(false), true)
    );
    // A run that reports a failure has failed, whatever the command's exit status.
    for command in [
        "go test ./... | tail",
        "go test ./... || true",
        "make test; ls",
    ] {
        assert_eq!(run(command, failed, false).0, Some(false), "{command}");
    }
}

#[test]
fn output_of_very_many_runs_is_taken_for_few() {
    let found = recognise_runs(Some("pytest"), &"3 passed in 0.1s\n".repeat(5_000));
    assert_eq!(found.len(), reader::RUNS_CAP);
    let sum: u64 = found.iter().filter_map(|one| one.passed).sum();
    assert_eq!(sum, 15_000);
}

#[test]
fn the_end_of_an_output_names_the_failing_tests() {
    let cargo = "---- a::reads stdout ----\nthread panicked:\n    left: 1\nnote: x\n\n\nfailures:\n    a::reads\n\n\
                 test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
    for (command, output, names) in [
        (
            "npx vitest run | tail",
            " FAIL  |web| src/a.test.ts > Größe > läuft über\nAssertionError: x\n\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n",
            "|web| src/a.test.ts > Größe > läuft über",
        ),
        (
            "pytest -q | tail -2",
            "FAILED tests/test_größe.py::test_überlauf[a b] - AssertionError: x\n1 failed, 1 passed in 0.31s",
            "tests/test_größe.py::test_überlauf[a b]",
        ),
        (
            "npx vitest run | tail",
            " FAIL  src/a.test.ts > Größe > läuft über\nAssertionError: x\n\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n",
            "src/a.test.ts > Größe > läuft über",
        ),
        (
            "cargo test | tail -5",
            &cargo[cargo.find("failures:").unwrap_or(0)..],
            "a::reads",
        ),
        ("cargo test | tail -12", cargo, "a::reads"),
        (
            "cargo test | tail -13",
            &format!("failures:\n\n{cargo}"),
            "a::reads",
        ),
    ] {
        let found = recognise_runs(Some(command), output);
        let failing: Vec<_> = found.iter().flat_map(|one| &one.failing).collect();
        assert_eq!(failing, [names], "{command}");
    }
}

#[test]
fn a_gradle_command_that_only_builds_is_no_test_run() {
    for (line, runs) in [
        ("./gradlew assemble", 0),
        ("gradle clean --console=plain", 0),
        ("cd app && ./gradlew :app:installDebug", 0),
        ("./gradlew clean build", 1),
        ("gradle check", 1),
        ("./gradlew clean && ./gradlew test", 1),
        ("./gradlew ci", 1),
    ] {
        let found = recognise_runs(Some(line), "BUILD SUCCESSFUL in 2s\n");
        assert_eq!(found.len(), runs, "{line}");
    }
}

#[test]
fn the_value_of_a_flag_selects_no_tests_and_a_suite_does() {
    for (runner, line, all) in [
        ("rspec", "bundle exec rspec --format documentation", true),
        ("rspec", "rspec -f d --order rand", true),
        (
            "rspec",
            "rspec --format documentation spec/a_spec.rb",
            false,
        ),
        ("rspec", "rspec --pattern=spec/models/*_spec.rb", false),
        ("pytest", "pytest -q -p no:cacheprovider", true),
        ("pytest", "python -m pytest -W error --junitxml a.xml", true),
        (
            "pytest",
            "pytest -p no:cacheprovider tests/test_a.py",
            false,
        ),
        (
            "phpunit",
            "vendor/bin/phpunit --configuration phpunit.xml",
            true,
        ),
        ("phpunit", "vendor/bin/phpunit --testsuite=Unit", false),
        (
            "go test",
            "go test -tags integration -covermode atomic ./...",
            true,
        ),
        ("mix test", "mix test --formatter JUnitFormatter", true),
        (
            "dotnet test",
            "dotnet test --collect \"XPlat Code Coverage\"",
            true,
        ),
        ("mvn test", "mvn test -Dgroups=fast", false),
        ("cargo test", "cargo test -- --ignored", false),
        ("cargo test", "cargo test -p web", false),
    ] {
        let row = ROWS.iter().find(|row| row.word == runner).unwrap();
        let runs = command::read_commands(line, None);
        let (_, scope) = place_of_runs(&runs_of(&runs, row), row, false);
        assert_eq!(scope == Scope::All, all, "{line}");
    }
}
