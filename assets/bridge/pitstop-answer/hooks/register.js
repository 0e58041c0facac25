// The second half of the bridge: has pitstop decide what a compaction leaves of the conversation.
//
// What it may do: answer a compaction of the main conversation: with pitstop's handoff, with a refusal, or not at all, and then the
// client goes its own way; and what `socket.js` and `trigger.js` name. It writes no file, submits nothing and starts no process.
//
// It is a plugin of its own because a plugin's hooks are not asked about the calls that it makes itself: a reboot in place is
// a compaction that the other half orders. The protocol is described in `crates/agent/src/bridge/`.

import { post } from "./socket.js";
import { loweredBy, restore } from "./trigger.js";

// The other half says by this word that a compaction is an order of pitstop's. Such a one is never left to the client: a
// conversation is replaced by the handoff or stays as it is.
const ORDERED = /^pitstop order (\d+)$/;

// What a failed call waits before the next, in milliseconds, and how many may fail: then no pitstop is there any more.
const RETRY = 500;
const TRIES = 3;

// Numbers the compactions of this process, so that a question asked again is known to be the same.
let asked = 0;

// The question is asked again until it is answered: one call is cut off after 30 s, a person may need longer.
const decide = async ($, question) => {
  for (let failures = 0; ; ) {
    try {
      const answer = await post($, "compact", question);
      if (answer.decision !== "wait") return answer;
      failures = 0;
    } catch (error) {
      failures += 1;
      if (failures === TRIES) throw error;
      await $.clock.sleep(RETRY);
    }
  }
};

// What is kept of the results of one step, in characters: with more the client would be above its trigger at once.
const KEPT_LIMIT = 60_000;

const isImage = ({ text, result }) =>
  text === "" &&
  (result?.type === "image" || result?.isImage === true || (Array.isArray(result) && result.some(({ type }) => type === "image")));

// A result as it is kept: an image cannot be, and the middle of a very long text is not.
const shortened = (result, most) => {
  if (isImage(result)) return { ...result, text: "[An image stood here. A reboot does not carry it over: read it again if you need it.]" };
  const { text } = result;
  if (text.length <= most) return result;
  const half = Math.floor(most / 2);
  const left = `[${text.length - 2 * half} characters were left out by a reboot: call the tool again if you need them.]`;
  // Half a pair is refused.
  return { ...result, text: `${text.slice(0, half)}\n${left}\n${text.slice(-half)}`.toWellFormed(), result: undefined };
};

// What has not been answered yet: in the middle of a turn the last step, and a prompt. The step is put together anew, as one message
// of the model and one of results, and without the client's handles: with those a resumed session goes on from the old conversation,
// and results that stand apart are lost (2.1.331).
const pending = ({ trigger, messages }) => {
  if (trigger !== "auto" || messages.at(-1)?.role !== "user") return [];
  const end = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  const start = messages.slice(0, end).findLastIndex(({ role }) => role === "user") + 1;
  const said = messages.slice(start, end);
  const behind = messages.slice(end);
  const toolUses = said.flatMap((message) => message.toolUses ?? []);
  const results = behind.flatMap((message) => message.toolResults ?? []);
  const prompts = behind.filter((message) => !message.toolResults?.length);
  if (toolUses.length === 0 || results.length === 0) return prompts.slice(-1);
  const toolResults = results.map((result) => shortened(result, Math.floor(KEPT_LIMIT / results.length)));
  const text = said.map((message) => message.text).filter(Boolean).join("\n\n");
  const step = [
    { role: "assistant", text, toolUses },
    { role: "user", text: "", toolUses: [], toolResults },
  ];
  return [...step, ...prompts];
};

const answered = async ($, e) => {
  asked += 1;
  // The trigger is set back before anything else: whatever is answered, this is asked once.
  const order = ORDERED.exec(e.instructions ?? "")?.[1] ?? (await restore($));
  const question = { compaction: asked, trigger: e.trigger, order: order && Number(order) };
  const { decision, text, why } = await decide($, question).catch((error) => {
    if (order === undefined) throw error;
    return { decision: "skip", why: "pitstop does not answer" };
  });
  if (decision === "replace") return { messages: [{ role: "user", text, toolUses: [] }, ...pending(e)] };
  return decision === "skip" ? { skip: why } : undefined;
};

// The other half orders no compaction before this is known: the client would summarize.
const report = async ($) => {
  for (let failures = 0; failures < TRIES; failures += 1) {
    try {
      return await post($, "answers", {});
    } catch {
      await $.clock.sleep(RETRY);
    }
  }
};

export const register = (on) => {
  on("session.start", async ($, e, next) => {
    if (e.isInteractive) void report($);
    return next(e);
  });
  on("session.compact", async ($, e, next) => {
    if (e.agentId !== undefined) {
      // A subagent's own compaction waits while the trigger is lowered for the main conversation.
      return (await loweredBy($)) === undefined ? next(e) : { skip: "the main conversation is rebooted" };
    }
    return (await answered($, e)) ?? next(e);
  }).catch(($, e, next) =>
    ORDERED.test(e.instructions ?? "") ? { skip: "pitstop does not answer" } : next(e),
  );
};
