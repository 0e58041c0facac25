// An order of the bridge: the conversation is replaced inside the running client.
//
// What it may do: stop the running turn, have the conversation compacted and run its own command.

// `pitstop-answer` is asked about this compaction and puts the handoff in. A command begins the turn behind it: only with one
// of its own does the client repeat its reminders.
export async function replaceConversation($, { id, nonce, interrupt, answers }, turn) {
  if (answers === false) return { outcome: "failed", why: "the mod that answers compactions, pitstop-answer, is not loaded" };
  if (interrupt && turn !== undefined) await $.turn.abort({ turnId: turn });
  const { skip } = await $.session.compact({ instructions: `pitstop order ${id}` });
  if (skip !== undefined) return { outcome: "failed", why: skip };
  // The conversation is replaced, whatever comes of the command, and polls go on while its turn runs: it is not waited for. Its
  // prompt is what pitstop waits for next.
  void $.command.run({ command: "pitstop:go", args: nonce }).catch(() => {});
  return { outcome: "replaced" };
}
