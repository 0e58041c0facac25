//! The endpoints as data, for the routes of the server, the `OpenAPI` description and the tests.

/// The right of a token's bearer; a greater right includes the lesser ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Right {
    /// The right to report observations and to read figures: all that the hosted agent's hooks get.
    Observe,
    /// The right to observe and to answer the supervisor's orders: the client's own side of the hosted session gets it. It gives
    /// no orders.
    Bridge,
    /// The right to do everything, which the user has.
    Control,
}

impl Right {
    /// Returns the right's name, as in the `OpenAPI` description's security schemes.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// A method that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Method {
    /// Asks and changes nothing.
    Get,
    /// Reports or orders.
    Post,
}

impl Method {
    /// Returns the method as HTTP spells it.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// An endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum Endpoint {
    /// A hook of the hosted agent.
    Hook,
    /// The hosted agent's status line.
    StatusLine,
    /// The use of the context window.
    Usage,
    /// The report that everything should be saved.
    AutoSave,
    /// The client's own side of the hosted session.
    Bridge,
    /// A tool that the hosted agent calls.
    Tool,
    /// The report of a commit.
    GitCommit,
    /// The report of a test run that has ended.
    TestResult,
    /// The figures for monitoring.
    Metrics,
    /// The status.
    Status,
    /// The iterations of this run.
    History,
    /// The stream of events as they happen.
    Events,
    /// A session's handoff.
    Handoff,
    /// The agent's screen.
    Screen,
    /// The permission that the agent asks for.
    Permission,
    /// A terminal that hands itself over.
    Attach,
    /// The order to type a prompt.
    Say,
    /// A person's answer to a permission.
    Decide,
    /// All other orders.
    Order,
}

impl Endpoint {
    /// All endpoints.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the path, the method and the right. An endpoint that changes something is a POST. Every caller that may report may
    /// also read plain figures, and the agent may read the beginning of its own handoff by a tool.
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
            Self::Screen => ("/screen", Get, Control),
            Self::Permission => ("/permission", Get, Control),
            Self::Attach => ("/attach", Post, Control),
            Self::Say => ("/control/say", Post, Control),
            Self::Decide => ("/control/permission", Post, Control),
            Self::Order => ("/control/{order}", Post, Control),
        }
    }

    /// Returns the path, with `{names}` for the variable parts.
    pub const fn path(self) -> &'static str {
        self.row().0
    }

    /// Returns the only method.
    pub const fn method(self) -> Method {
        self.row().1
    }

    /// Returns the right that its use requires.
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
