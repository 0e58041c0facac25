// pitstop as a plugin, in a client that no pitstop hosts: a gauge above the prompt, a warning at each line, a handoff that is kept
// in a file, and the question whether it replaces the conversation.
//
// What it may do: run the program that `place.js` names, which computes the gauge and writes the handoff; read the session's id, its
// transcript's path and the prompt box; draw one row above the prompt, notices and lines of the chat; ask its person; read the handoff's
// file; and, after a yes, have the client compact, answer that with the handoff, and run its own command. It answers no other compaction.
//
// The client lets a plugin answer a compaction that it has asked for by the command `/compact`, but not one by `$.session.compact`
// (2.1.332): so one plugin is enough.

import { readFigures } from "./figures.js";
import { HANDOFFS, PROGRAM } from "./place.js";

const LATER = "Not now";
const REBOOT = "Reboot in place with this handoff";
const WHERE = "Show where the handoff is";

// The words by which a compaction is known to be ours. `hooks.json` has the client refuse one that this file has not answered: its own
// summary would take the place of the conversation. Two words behind a command are no prompt of a person's in the next handoff.
const ORDERED = /^pitstop-order ([0-9a-f]+)$/;

// The client writes its transcript a little later than it says that a turn is over, in milliseconds.
const WRITTEN = 300;

const COLOURS = { ok: "success", notice: "suggestion", warn: "warning", compact: "error" };

// What is drawn: the words and the level of the last figure.
let gauge;
// The highest line that was warned of, as the program names it.
let passed;
// Where the client itself compacts, by the last figures that say so: within a turn they do not.
let compactsAt;
let turnRuns = false;
// How many turns have begun.
let turns = 0;
// Why nothing is done here, if so.
let refusal = "the plugin pitstop has not started";
// Whether the compact line was passed and its person was not asked yet.
let due = false;
let complained = false;
// The reboot that its person has approved, until the client has asked for its text.
let order;

// What is to be done, and how the loop that does it is woken: it is done outside of the handlers, which the client waits for.
const wishes = new Set();
let wake = () => {};

const wish = (what) => {
  wishes.add(what);
  wake();
};

const run = async ($, what, question) => {
  const ended = $.process.run([PROGRAM, "plugin", what], { stdin: JSON.stringify(question) });
  const { exitCode, stdout, stderr } = await ended.catch(() => {
    throw new Error("cannot be started: install the plugin again by the pitstop that you use");
  });
  if (exitCode !== 0) throw new Error(stderr.replace(/^error: /, "").trim() || `exit code ${exitCode}`);
  return JSON.parse(stdout);
};

const measure = async ($) => {
  const { used, window, compacts_at, categories } = await readFigures($, !turnRuns);
  if (categories) compactsAt = compacts_at;
  const now = used === undefined ? undefined : await run($, "gauge", { used, window, compacts_at: compactsAt, passed });
  gauge = now?.gauge;
  passed = now?.passed;
  $.ui.invalidate("ui.render");
  if (now?.warning) $.ui.toast(now.warning, { timeoutMs: 15_000 });
  if (now?.offers) due = true;
  if (due && !turnRuns) wish("offer");
};

const keep = async ($) => {
  const { transcriptPath } = await $.session.info();
  return run($, "handoff", { session: await $.session.id(), transcript: transcriptPath, directory: HANDOFFS });
};

// The person may take the time to read the handoff, and to change it in an editor: what the file holds at the yes is what is used.
const question = async ($, { file, size }) => {
  const state = gauge ? `The context holds ${gauge.words}. ` : "";
  for (let place = ""; ; place = ` It is ${file}, and may be edited before you answer.`) {
    const text = `${state}Replace this conversation by its handoff (${size})?${place}`;
    const options = place ? [LATER, REBOOT] : [LATER, REBOOT, WHERE];
    const answer = await $.ui.ask(text, { header: "pitstop", options }).catch(() => LATER);
    if (answer !== WHERE) return answer === REBOOT;
  }
};

const offer = async ($, asked) => {
  due = false;
  const begun = turns;
  const handoff = await keep($);
  // The handoff may lack a turn that has begun since: it is asked at the end of that.
  if (turnRuns || turns !== begun) {
    due = true;
    return;
  }
  // A question takes the keys: never while a text is being typed.
  if (!asked && (await $.prompt.read()).text !== "") {
    $.ui.toast("/pitstop:reboot offers a reboot in place", { timeoutMs: 15_000 });
    return;
  }
  if (!(await question($, handoff))) return;
  if (turns !== begun) {
    $.ui.log("the conversation was not replaced: a turn has begun");
    return;
  }
  const text = await $.fs.read(handoff.file);
  const { nonce } = handoff;
  order = { nonce, text: text.trimEnd(), given: false };
  await $.command.run({ command: "compact", args: `pitstop-order ${nonce}` }).catch(() => {});
  const { given } = order;
  order = undefined;
  if (given) await $.command.run({ command: "pitstop:go", args: nonce });
  else $.ui.log("the conversation was not replaced");
};

const WISHES = ["measure", "keep", "offer", "ask"];

const fulfil = async ($, what) => {
  if (what === "measure") return measure($);
  if (what !== "keep") return offer($, what === "ask");
  await $.clock.sleep(WRITTEN);
  return keep($);
};

// What cannot be done is said once; what a person has asked for, each time.
const fail = ($, what, error) => {
  if (what === "measure") gauge = undefined;
  if (complained && what !== "ask") return;
  complained = true;
  $.ui.log(`${PROGRAM}: ${error.message ?? error}`);
};

const serve = async ($) => {
  for (;;) {
    const what = WISHES.find((one) => wishes.delete(one));
    if (what === undefined) await new Promise((resolve) => (wake = resolve));
    else await fulfil($, what).catch((error) => fail($, what, error));
  }
};

const forget = ($) => {
  gauge = undefined;
  passed = undefined;
  due = false;
  $.ui.invalidate("ui.render");
};

export const register = (on) => {
  on("session.start", async ($, e, next) => {
    const hosted = (await $.env.get("PITSTOP_OBSERVE")) !== undefined;
    refusal = hosted ? "pitstop hosts this session: F5 reboots it" : undefined;
    if (!e.isInteractive) refusal = "no person is there to be asked";
    if (refusal === undefined) void serve($);
    wish("measure");
    return next(e);
  });
  // Another conversation begins in this process, as by `/clear`.
  on("session.end", async ($, e, next) => {
    forget($);
    return next(e);
  });
  on("turn.start", async ($, e, next) => {
    if (e.agentId === undefined) {
      turnRuns = true;
      turns += 1;
      // The handoff that was approved knows nothing of this turn.
      if (order?.given === false) order.nonce = undefined;
    }
    return next(e);
  });
  on("turn.complete", async ($, e, next) => {
    if (e.agentId === undefined) {
      turnRuns = false;
      wish("measure");
      wish("keep");
    }
    return next(e);
  });
  on("session.measure", async ($, e, next) => {
    wish("measure");
    return next(e);
  });
  on("classic.PostToolUse", async ($, e, next) => {
    wish("measure");
    return next(e);
  });
  on("command.run", { command: "pitstop:reboot" }, async ($, e) => {
    if (refusal !== undefined) return { text: refusal };
    wish("ask");
    return { text: "the handoff is being made" };
  }).catch(($, e, next) => next(e));
  on("ui.render", { component: "AbovePrompt" }, async ($, e, next) => {
    if (gauge === undefined || e.props.hasSurvey) return next(e);
    const { Box, Text } = $.ui.resolve(e);
    const words = Text({ color: COLOURS[gauge.level], children: `${gauge.bar} ${gauge.words}` });
    return Box({ children: [Text({ dimColor: true, children: "pitstop " }), words] });
  });
  on("session.compact", async ($, e, next) => {
    const nonce = ORDERED.exec(e.instructions ?? "")?.[1];
    if (e.agentId !== undefined) return next(e);
    if (nonce === undefined) {
      const compacted = await next(e);
      forget($);
      return compacted;
    }
    if (nonce !== order?.nonce) return { skip: "pitstop has not ordered this" };
    order.given = true;
    forget($);
    return { messages: [{ role: "user", text: order.text, toolUses: [] }] };
  }).catch(($, e, next) => (ORDERED.test(e.instructions ?? "") ? { skip: "pitstop does not answer" } : next(e)));
};
