//! The human's requests.

use serde::{Deserialize, Serialize};

use pitstop_handoff::preserved::Item;
use pitstop_transcript::{
    human::{HumanWords, Said},
    words::without_images,
};

/// The prompts that are kept through the lineage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// The first prompt that a human gave: the objective if there is no other.
    pub first: Option<Said>,
    /// The latest prompt, if it is not the first.
    pub latest: Option<Said>,
    /// True if a person has cleared the conversation since: with their next prompt another task begins.
    pub is_cleared: bool,
}

impl Requests {
    /// Returns the first prompt where it is not the objective itself, which is named beside it.
    pub fn first_beside(&self, objective: Option<&Item>) -> Option<&Said> {
        let first = self.first.as_ref()?;
        let is_objective = objective.is_some_and(|one| one.text == first.text.trim());
        (!is_objective).then_some(first)
    }

    /// Takes over the human's requests, of which this text is none.
    pub(super) fn take(&mut self, words: &HumanWords, warmup: Option<&str>) {
        for one in [&mut self.first, &mut self.latest] {
            one.take_if(|said| words.is_taken_back(said));
        }
        let warmup = warmup.map(str::trim);
        let asked = |said: &&Said| Some(said.text.as_str()) != warmup;
        let first = words.first.as_ref().filter(asked);
        let prompt = words.latest.as_ref().filter(asked).or(first);
        if self.is_cleared && prompt.is_some() {
            *self = Self::default();
        }
        if self.first.is_none() {
            self.first = words.carried_first.as_ref().or(first).cloned();
        }
        // The transcript says more of it than the hook: the files of its images.
        if let (Some(own), Some(first)) = (&mut self.first, first)
            && without_images(&first.text) == own.text
        {
            own.text.clone_from(&first.text);
        }
        // The words that a handoff carried are older than those read since.
        let carried = words.carried_latest.as_ref();
        let latest = prompt.or_else(|| carried.filter(|_| self.latest.is_none()));
        let is_first =
            |latest: &Said| (self.first.as_ref()).is_some_and(|first| first.text == latest.text);
        if let Some(latest) = latest.filter(|latest| !is_first(latest)) {
            self.latest = Some(latest.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_gets_the_files_of_its_images_from_the_transcript() {
        let images = json!({"type": "user", "isMeta": true, "message": {"content": "[Image: source: /p/a.png]"}});
        let (mut words, mut requests) = (HumanWords::default(), Requests::default());
        for prompt in ["[Image #1] Build it like this", "[Image #2] und so"] {
            words.take_prompt(prompt, None);
            requests.take(&words, None);
            words.take_record(&images);
            requests.take(&words, None);
        }
        let texts = [requests.first, requests.latest].map(|said| said.unwrap().text);
        assert_eq!(
            texts,
            [
                "[Image #1] Build it like this\n[Image: source: /p/a.png]",
                "[Image #2] und so\n[Image: source: /p/a.png]",
            ]
        );
    }

    #[test]
    fn a_request_that_was_taken_back_out_of_the_queue_is_none() {
        for prompt in ["Delete the tests", "テストを消して", "rm -rf build && make"] {
            let (mut words, mut requests) = (HumanWords::default(), Requests::default());
            let queue = |words: &mut HumanWords, operation: &str| {
                let record =
                    json!({ "type": "queue-operation", "operation": operation, "content": prompt });
                words.take_record(&record)
            };
            words.take_prompt("Build it", None);
            queue(&mut words, "enqueue");
            requests.take(&words, None);
            assert_eq!(requests.latest.clone().expect("it waits").text, prompt);
            queue(&mut words, "popAll");
            requests.take(&words, None);
            assert_eq!(requests.latest, None);
            assert_eq!(requests.first.expect("the first").text, "Build it");
        }
    }
}
