//! The compactions of one iteration, each counted once from the reports of up to four sources.

/// The compactions of one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compactions {
    /// The number of compactions in sessions that this iteration has left.
    earlier: u32,
    /// The number of boundaries that the transcript had when it was first read whole, from before this iteration.
    inherited: Option<u64>,
    boundaries: u32,
    rebuilt: u32,
    finished: u32,
    /// True if the first reported compaction is the supervisor's own, by which the iteration began.
    begins_with_one: bool,
    /// The number of falls of the figure that no other source has reported as compactions.
    falls: u32,
    /// The turn of the last compaction that was reported and whose fall has not been seen.
    pub(in crate::app) awaits_fall: Option<u64>,
    /// The turn of the last fall that nothing else has reported.
    awaits_report: Option<u64>,
}

impl Compactions {
    /// Returns the number of compactions in this iteration.
    pub fn count(self) -> u32 {
        let reported = self.reported();
        let own = u32::from(self.begins_with_one);
        self.earlier
            .saturating_add(reported.saturating_sub(own))
            .saturating_add(self.falls)
    }

    /// Creates the count of an iteration that begins by a compaction of the supervisor's own, in a session whose transcript has
    /// `before` boundaries ahead of it.
    pub(in crate::app) fn behind_our_own(before: Option<u64>) -> Self {
        Self {
            inherited: before,
            begins_with_one: true,
            ..Self::default()
        }
    }

    /// Returns the number of boundaries before the one by which the iteration began, while that one has not been read yet.
    pub(in crate::app) fn before_our_own(self) -> Option<u64> {
        self.inherited
            .filter(|_| self.begins_with_one && self.boundaries == 0)
    }

    fn reported(self) -> u32 {
        self.boundaries.max(self.rebuilt).max(self.finished)
    }

    /// Takes the number of boundaries in a transcript that was read to its end.
    pub(in crate::app) fn transcript(&mut self, total: u64, turn: u64) {
        let before = self.reported();
        let inherited = *self.inherited.get_or_insert(total);
        let own = u32::try_from(total.saturating_sub(inherited)).unwrap_or(u32::MAX);
        // A file that was cut or replaced does not lower the count.
        self.boundaries = self.boundaries.max(own);
        self.explain(before, turn);
    }

    pub(in crate::app) fn finish(&mut self, turn: u64) {
        let before = self.reported();
        self.finished = self.finished.saturating_add(1);
        self.explain(before, turn);
    }

    pub(in crate::app) fn rebuild(&mut self, turn: u64) {
        let before = self.reported();
        self.rebuilt = self.rebuilt.saturating_add(1);
        self.explain(before, turn);
    }

    /// Matches a newly reported compaction with a fall that came first, or else makes it await its own fall.
    fn explain(&mut self, before: u32, turn: u64) {
        if self.reported() == before {
            return;
        }
        match self.awaits_report.take() {
            Some(fell) if turn <= fell.saturating_add(1) => {
                self.falls = self.falls.saturating_sub(1);
            }
            _ => self.awaits_fall = Some(turn),
        }
    }

    pub(in crate::app) fn fall(&mut self, turn: u64) {
        match self.awaits_fall.take() {
            Some(reported) if turn <= reported.saturating_add(1) => {}
            _ => {
                self.falls = self.falls.saturating_add(1);
                self.awaits_report = Some(turn);
            }
        }
    }

    /// Starts counting again, since the agent has begun another session in the same iteration.
    pub fn change_session(&mut self) {
        *self = Self {
            earlier: self.count(),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(sources: &[(char, u64)]) -> u32 {
        let mut compactions = Compactions::default();
        compactions.transcript(0, 0);
        let mut total = 0;
        for (source, turn) in sources {
            match source {
                'b' => {
                    total += 1;
                    compactions.transcript(total, *turn);
                }
                's' => compactions.rebuild(*turn),
                'p' => compactions.finish(*turn),
                'f' => compactions.fall(*turn),
                _ => compactions.transcript(total, *turn),
            }
        }
        compactions.count()
    }

    #[test]
    fn one_compaction_counts_once_from_any_source_and_in_any_order() {
        for order in [
            "b", "s", "p", "f", "bspf", "fbsp", "pfb", "sfp", "bf", "fb", "spf", "pfsb", "psbf",
        ] {
            let same_turn: Vec<_> = order.chars().map(|source| (source, 3)).collect();
            assert_eq!(after(&same_turn), 1, "{order}");
        }
        assert_eq!(after(&[('p', 3), ('b', 3), ('f', 4)]), 1);
        assert_eq!(
            after(&[('f', 3), ('b', 4)]),
            1,
            "a transcript that is read late"
        );
    }

    #[test]
    fn two_compactions_count_twice() {
        for sources in [
            &[('b', 1), ('b', 5)][..],
            &[('f', 1), ('f', 5)],
            &[('f', 1), ('b', 5)],
            &[('b', 1), ('f', 5)],
            &[
                ('b', 1),
                ('s', 1),
                ('p', 1),
                ('f', 1),
                ('b', 2),
                ('s', 2),
                ('p', 2),
                ('f', 2),
            ],
            // The first was missed by the hooks, the second by the transcript.
            &[('b', 1), ('f', 1), ('f', 9), ('p', 9)],
        ] {
            assert_eq!(after(sources), 2, "{sources:?}");
        }
    }

    #[test]
    fn boundaries_of_a_life_before_do_not_count() {
        let mut compactions = Compactions::default();
        compactions.transcript(7, 0);
        assert_eq!(compactions.count(), 0);
        compactions.transcript(8, 2);
        compactions.transcript(3, 2);
        compactions.transcript(8, 2);
        assert_eq!(
            compactions.count(),
            1,
            "a file that was cut takes nothing back"
        );
        compactions.change_session();
        compactions.transcript(4, 0);
        assert_eq!(compactions.count(), 1);
        compactions.transcript(5, 1);
        assert_eq!(compactions.count(), 2);
    }

    proptest! {
        #[test]
        fn every_real_compaction_counts_once(
            // The sources that saw it, at least one of them a reporting one, and the number of turns until the next one came.
            seen in proptest::collection::vec((any::<[bool; 2]>(), 1_usize..4, 2_u64..9), 0..20),
        ) {
            let mut turn = 0;
            let mut sources = Vec::new();
            for ([fell, late], reported, wait) in &seen {
                turn += wait;
                let reported: Vec<_> = ['b', 's', 'p'][..*reported].iter().map(|one| (*one, turn)).collect();
                let fall = fell.then_some(('f', turn));
                if *late {
                    sources.extend(fall);
                    sources.extend(reported);
                } else {
                    sources.extend(reported);
                    sources.extend(fall);
                }
            }
            prop_assert_eq!(after(&sources) as usize, seen.len());
        }

        #[test]
        fn hostile_totals_and_turns_do_no_harm(totals in proptest::collection::vec((any::<u64>(), any::<u64>(), 0..4_u8), 0..60)) {
            let mut compactions = Compactions::default();
            let mut before = 0_u32;
            for (total, turn, source) in totals {
                match source {
                    0 => compactions.transcript(total, turn),
                    1 => compactions.finish(turn),
                    2 => compactions.rebuild(turn),
                    _ => compactions.fall(turn),
                }
                let count = compactions.count();
                prop_assert!(count >= before.saturating_sub(1), "no more than an explained fall is taken back");
                before = count;
            }
        }
    }
}
