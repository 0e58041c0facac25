//! The endpoints as data: what the server routes, what the `OpenAPI` description says, what the tests walk through.

/// What a bearer may do; the greater right includes the lesser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Right {
    /// Report what was seen, read figures: all that the hosted agent's hooks get.
    Observe,
    /// That, and to answer what it is asked: what the client's own side of the hosted session gets. It orders nothing.
    Bridge,
    /// Everything: the user's own.
    Control,
}

impl Right {
    /// The word for it, as in the `OpenAPI` description's security schemes.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The methods that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Method {
    /// Asks, and changes nothing.
    Get,
    /// Reports or orders.
    Post,
}

impl Method {
    /// The method as HTTP spells it.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// One endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum Endpoint {
    /// A hook of the hosted agent.
    Hook,
    /// The hosted agent's status line.
    StatusLine,
    /// How full the context window is.
    Usage,
    /// Saves everything.
    AutoSave,
    /// The client's own side of the hosted session.
    Bridge,
    /// A tool that the hosted agent calls.
    Tool,
    /// A commit was made.
    GitCommit,
    /// A test run has ended.
    TestResult,
    /// The figures for monitoring.
    Metrics,
    /// How things stand.
    Status,
    /// The iterations of this run.
    History,
    /// What happens, as it happens.
    Events,
    /// A session's handoff.
    Handoff,
    /// Types a prompt.
    Say,
    /// Every other order.
    Order,
}

impl Endpoint {
    /// All of them.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Its path, its method and its right. What changes something is a POST. Figures without words may be read by every caller that
    /// may report, and by a tool the agent may read the beginning of its own handoff.
    const fn row(self) -> (&'static str, Method, Right) {
        use Method::{Get, Post};
        use Right::{Bridge, Control, Observe};
        match self {
            Self::Hook => ("/hooks/claude/{event}", Post, Observe),
            Self::StatusLine => ("/statusline", Post, Observe),
            Self::Usage => ("/context/usage", Get, Observe),
            Self::AutoSave => ("/context/auto-save", Post, Observe),
            Self::Bridge => ("/bridge/{message}", Post, Bridge),
            Self::Tool => ("/tools/{tool}", Post, Observe),
            Self::GitCommit => ("/hooks/git-commit", Post, Observe),
            Self::TestResult => ("/hooks/test-result", Post, Observe),
            Self::Metrics => ("/metrics", Get, Observe),
            Self::Status => ("/status", Get, Control),
            Self::History => ("/history", Get, Control),
            Self::Events => ("/events", Get, Control),
            Self::Handoff => ("/api/sessions/{id}/handoff", Get, Control),
            Self::Say => ("/control/say", Post, Control),
            Self::Order => ("/control/{order}", Post, Control),
        }
    }

    /// Its path, with `{names}` for what varies.
    #[must_use]
    pub const fn path(self) -> &'static str {
        self.row().0
    }

    /// Its one method.
    #[must_use]
    pub const fn method(self) -> Method {
        self.row().1
    }

    /// What it takes to use it.
    #[must_use]
    pub const fn right(self) -> Right {
        self.row().2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_observed_needs_or_gives_control() {
        assert!(Right::Observe < Right::Bridge && Right::Bridge < Right::Control);
        for endpoint in Endpoint::ALL {
            let order = endpoint.path().starts_with("/control/");
            let bridge = endpoint.path().starts_with("/bridge/");
            assert_eq!(bridge, endpoint.right() == Right::Bridge);
            assert!(!order || endpoint.right() == Right::Control);
            assert!(!order || endpoint.method() == Method::Post);
        }
    }

    #[test]
    fn each_endpoint_has_a_path_of_its_own() {
        for (at, endpoint) in Endpoint::ALL.iter().enumerate() {
            let others = &Endpoint::ALL[at + 1..];
            assert!(others.iter().all(|other| other.path() != endpoint.path()));
        }
    }
}
