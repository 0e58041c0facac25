// The bridge: reports this session's usage, turns and prompt box to the pitstop that hosts it, and carries out its orders.
//
// What it may do: read the version and how many prompts the conversation has, and what `figures.js`, `orders.js`, `prompts.js`,
// `socket.js`, `tools.js` and `trigger.js` beside it name. It changes no other event on its way, writes no file and starts no process.
//
// No handler waits for the socket: reports go through a queue, and are dropped when no pitstop answers. The protocol is described
// in `crates/agent/src/bridge/`.

import { readFigures } from "./figures.js";
import { carryOut, conversation } from "./orders.js";
import { prompts, refusal } from "./prompts.js";
import { post } from "./socket.js";
import { answerTools, giveTools } from "./tools.js";
import { restore } from "./trigger.js";

const PROTOCOL = 1;

// Texts are cut here before they are sent, in UTF-16 units: a prompt is known by its beginning.
const PROMPT_LIMIT = 4096;
const DRAFT_LIMIT = 65536;

// How many facts may wait for the first answer.
const QUEUE_LIMIT = 100;

// The pause before the next try, in milliseconds: each try in vain doubles it.
const RETRY = 1000;
const RETRY_LIMIT = 8000;

let welcome = false;
let refused = false;

// What waits to be sent. Of drafts and figures only the newest is worth sending.
let queue = [];
let sending = false;

const flush = async ($) => {
  if (sending || !welcome) return;
  sending = true;
  while (queue.length > 0) {
    const { fact } = queue.shift();
    try {
      await post($, "fact", typeof fact === "function" ? await fact() : fact);
    } catch {
      // It is worth nothing later.
    }
  }
  sending = false;
};

const report = ($, fact, key) => {
  if (key) queue = queue.filter((one) => one.key !== key);
  if (queue.length < QUEUE_LIMIT) queue.push({ fact, key });
  void flush($);
};

const figures = async ($, detail) => ({ fact: "usage", ...(await readFigures($, detail)) });

const reportUsage = ($, detail) => report($, () => figures($, detail), detail ? "usage" : "figure");

const reportDraft = ($, { text, cursor }) =>
  report($, { fact: "draft_changed", text: text.slice(0, DRAFT_LIMIT), cursor: Math.min(cursor, DRAFT_LIMIT) }, "draft");

// A prompt that is back in the box, as after a rewind: how many are left says which one it was.
const promptPutBack = async ($, text) => {
  const left = (await $.session.messages()).filter(({ role, toolResults }) => role === "user" && !toolResults?.length);
  return { fact: "prompt_put_back", text: text.slice(0, DRAFT_LIMIT), prompts: left.length };
};

// An order belongs to the first who takes it, so that of several processes one carries it out, once.
const follow = async ($, order) => {
  const { taken, answers } = await post($, "take", { order: order.id });
  if (!taken) return;
  const answer = await carryOut($, { ...order, answers }).catch((error) => ({ outcome: "failed", why: `${error}` }));
  await post($, "answer", { order: order.id, ...answer });
};

const serve = async ($) => {
  let pause = RETRY;
  while (!refused) {
    try {
      if (!welcome) {
        const { version } = await $.session.version();
        const { accepted, asks_of_prompts: asks } = await post($, "hello", { protocol: PROTOCOL, client: version });
        prompts.asks = asks;
        refused = !accepted;
        welcome = accepted;
        pause = RETRY;
        reportUsage($, true);
        continue;
      }
      const { order, asks_of_prompts: asks } = await post($, "poll", {});
      prompts.asks = asks;
      if (order) await follow($, order);
    } catch {
      welcome = false;
      prompts.asks = false;
      queue = [];
      await $.clock.sleep(pause);
      pause = Math.min(pause * 2, RETRY_LIMIT);
    }
  }
};

export const register = (on) => {
  answerTools(on);
  on("session.start", async ($, e, next) => {
    // Without a person at the prompt an open call would hold the client's exit up.
    if (e.isInteractive) void serve($);
    await giveTools($);
    return next(e);
  });
  on("classic.SessionStart", async ($, e, next) => {
    // A subagent's own.
    if (e.agent_id) return next(e);
    if (e.source === "compact") conversation.calls = 0;
    report($, { fact: "session_started", source: e.source });
    reportUsage($, true);
    return next(e);
  });
  on("turn.start", async ($, e, next) => {
    if (e.agentId === undefined) {
      conversation.turn = e.turnId;
      report($, { fact: "turn_started", turn: e.turnId });
    }
    return next(e);
  });
  on("turn.complete", async ($, e, next) => {
    if (e.agentId === undefined) {
      conversation.turn = undefined;
      report($, { fact: "turn_ended", turn: e.turnId, reason: e.reason });
      // Else the next prompt would be compacted.
      await restore($);
      // What is said behind it is of the whole turn.
      reportUsage($, false);
    }
    return next(e);
  });
  on("session.measure", async ($, e, next) => {
    reportUsage($, true);
    return next(e);
  });
  // Within a turn: each tool's end is behind a call of the model.
  on("classic.PostToolUse", async ($, e, next) => {
    if (!e.agent_id) conversation.calls += 1;
    reportUsage($, false);
    return next(e);
  });
  on("prompt.submit", async ($, e, next) => {
    const drop = await refusal($, e).catch(() => undefined);
    if (drop !== undefined) return { drop };
    report($, { fact: "prompt_submitted", origin: e.origin.kind, text: e.text.slice(0, PROMPT_LIMIT) });
    return next(e);
  });
  // What an edit has made of the box is known only later: by then the box may have been emptied by a submission.
  let changes = 0;
  on("prompt.edit", async ($, e, next) => {
    changes += 1;
    const change = changes;
    const box = await next(e);
    if (change === changes) reportDraft($, box);
    return box;
  });
  on("prompt.change", async ($, e, next) => {
    changes += 1;
    reportDraft($, e);
    // In a turn it is one that waited.
    const isBack = e.origin?.kind === "engine" && e.text !== "" && !conversation.turn;
    if (isBack) report($, () => promptPutBack($, e.text), "put_back");
    return next(e);
  });
};
