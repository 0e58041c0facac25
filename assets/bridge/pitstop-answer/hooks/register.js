// The second half of the bridge: has pitstop decide what a compaction leaves of the conversation.
//
// What it may do: read the files that PITSTOP_BRIDGE names, call the Unix socket named there, read the session id, and answer a
// compaction of the main conversation: with pitstop's handoff, with a refusal, or not at all, and then the client goes its own
// way. It writes no file, submits nothing and starts no process.
//
// It is a plugin of its own because a plugin's hooks are not asked about the calls that it makes itself: a reboot in place is
// a compaction that the other half orders. The protocol is described in `src/bridge/`.

import { find } from "./socket.js";

// The other half says by this word that a compaction is an order of pitstop's. Such a one is never left to the client: a
// conversation is replaced by the handoff or stays as it is.
const ORDERED = /^pitstop order (\d+)$/;

// What a failed call waits before the next, in milliseconds, and how many may fail: then no pitstop is there any more.
const RETRY = 500;
const TRIES = 3;

const INSTANCE = Math.random().toString(36).slice(2) + Math.random().toString(36).slice(2);

// Numbers the compactions of this process, so that a question asked again is known to be the same.
let asked = 0;

const post = async ($, name, fields) => {
  const { socketPath, token } = await find($);
  const session = await $.session.id();
  const response = await $.http.fetch(`http://pitstop/bridge/${name}`, {
    method: "POST",
    socketPath,
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ session, instance: INSTANCE, ...fields }),
  });
  if (!response.ok) throw new Error(`${response.status}`);
  return JSON.parse(response.text);
};

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

// What has not been answered yet: the person's prompt, or in the middle of a turn a tool's call and its result.
const pending = ({ trigger, messages }) => {
  if (trigger !== "auto") return [];
  const last = messages.at(-1);
  if (last?.role !== "user") return [];
  return messages.slice(last.toolResults?.length ? -2 : -1);
};

const answered = async ($, e) => {
  asked += 1;
  const order = ORDERED.exec(e.instructions ?? "")?.[1];
  const question = { compaction: asked, trigger: e.trigger, order: order && Number(order) };
  const { decision, text, why } = await decide($, question);
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
    if (e.agentId !== undefined) return next(e);
    return (await answered($, e)) ?? next(e);
  }).catch(($, e, next) =>
    ORDERED.test(e.instructions ?? "") ? { skip: "pitstop does not answer" } : next(e),
  );
};
