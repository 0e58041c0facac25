// An order of the bridge: the conversation is replaced inside the running client.
//
// What it may do: stop the running turn and the shell commands that it leaves, have the conversation compacted and run its own
// command, and what `trigger.js` names.

import { lower, putBack } from "./trigger.js";

const NOT_LOADED = "the mod that answers compactions, pitstop-answer, is not loaded";

// The client ends a turn in which it has compacted three times, each within three steps of the one before.
const STEPS_APART = 4;

// How long a turn may take to stop, in milliseconds: it takes 120 (2.1.331).
const STOPS = 5000;
const PAUSE = 10;

// How long the client may take to refuse a command, in milliseconds: it does it in 20.
const REFUSED_WITHIN = 300;

// More messages than one step has.
const LAST = 32;

// Stops the running turn. The client leaves a shell command of its last step running in the background then: it is stopped, too.
async function interrupt($, conversation) {
  await $.turn.abort({ turnId: conversation.turn });
  for (let waited = 0; conversation.turn !== undefined && waited < STOPS; waited += PAUSE) await $.clock.sleep(PAUSE);
  const messages = await $.session.messages();
  const results = messages.slice(-LAST).flatMap(({ toolResults }) => toolResults ?? []);
  for (const { result } of results) {
    if (result?.backgroundedByTurnAbort) await $.tool.call({ tool: "TaskStop", task_id: result.backgroundTaskId }).catch(() => {});
  }
}

// `pitstop-answer` is asked about this compaction and puts the handoff in. A command begins the turn behind it: only with one
// of its own does the client repeat its reminders.
export async function replaceConversation($, { id, nonce, answers, when }, conversation) {
  if (answers === false) return { outcome: "failed", why: NOT_LOADED };
  if (when === "interrupting" && conversation.turn !== undefined) await interrupt($, conversation);
  if (conversation.turn !== undefined) return { outcome: "failed", why: "a turn runs" };
  const { skip } = await $.session.compact({ instructions: `pitstop order ${id}` });
  if (skip !== undefined) return { outcome: "failed", why: skip };
  // The conversation is replaced, whatever comes of the command. That its turn is over is not waited for, only whether it is refused:
  // after an Escape the client takes no command of a mod's until its person types (2.1.331).
  const run = $.command.run({ command: "pitstop:go", args: nonce });
  const begun = await Promise.race([run.then(() => true, () => false), $.clock.sleep(REFUSED_WITHIN).then(() => true)]);
  return { outcome: "replaced", begun };
}

// The same in the middle of a turn, which goes on: the client is made to compact at its next step, and asks `pitstop-answer` then.
export async function replaceAtNextStep($, { id, answers }, conversation) {
  if (answers === false) return { outcome: "failed", why: NOT_LOADED };
  if (conversation.turn === undefined) return { outcome: "failed", why: "no turn runs" };
  if (conversation.calls < STEPS_APART) {
    return { outcome: "failed", why: "the conversation was replaced less than four steps ago" };
  }
  const { before, deny } = await lower($, id);
  if (deny !== undefined) {
    await putBack($, before);
    return { outcome: "failed", why: `the compaction trigger cannot be set: ${deny}` };
  }
  // Where compaction is switched off in settings, which the environment does not overrule, there is no threshold.
  const { context } = await $.session.usage({ breakdown: "summary" });
  if (context.breakdown?.autoCompactThreshold === undefined) {
    await putBack($, before);
    return { outcome: "failed", why: "compaction is switched off in the client's settings" };
  }
  // The turn may have ended since: what its end has set back we may have lowered behind it.
  if (conversation.turn === undefined) await putBack($, before);
  return { outcome: "lowered" };
}
