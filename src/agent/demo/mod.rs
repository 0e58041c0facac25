//! The scripted stand-in behind `pitstop demo` and the tests.
