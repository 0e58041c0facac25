//! Asks git.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GitFacts {
    #[default]
    Unknown,
    Repository(Repository),
}
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    pub branch: Option<String>,
    pub head: Option<String>,
    pub commits: Vec<Commit>,
    pub modified: Vec<String>,
    pub created: Vec<String>,
}
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    pub sha: String,
    pub subject: String,
}
