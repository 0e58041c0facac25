// The bridge's orders: what the pitstop that hosts this session may have done in it.
//
// What it may do: read the prompt box, fill it where it is empty, submit a prompt where no turn runs, no dialog has the keys and
// the prompt box is empty, and what `replace.js` and `trigger.js` name.

import { replaceAtNextStep, replaceConversation } from "./replace.js";
import { restore } from "./trigger.js";

// What `register.js` has seen of the conversation.
export const conversation = {
  // The id of the turn that runs, if one does.
  turn: undefined,
  // How many calls of tools have ended since it was replaced last.
  calls: Infinity,
  // The client sends what it has to say of directory, model, tools and skills with the first typed prompt of a conversation, and
  // not with one that a mod submits (2.1.330).
  isReminded: false,
};

// The client's hooks hear of a turn's end up to half a second before it is over: so long it is waited for, in milliseconds.
const TURN_ENDS = 2000;
const PAUSE = 20;

// Nothing is inserted, and the answer says whether a dialog has the keys.
async function probe($) {
  const { isFilled, refusal } = await $.prompt.fill({ text: "", mode: "insert" });
  return isFilled ? undefined : (refusal ?? "unknown");
}

// Why the prompt box takes no text of ours, if so.
async function boxRefusal($) {
  const refusal = await probe($);
  if (refusal !== undefined) return refusal;
  const { text } = await $.prompt.read();
  return text === "" ? undefined : "draft";
}

// Why no prompt is submitted, if so.
async function submitRefusal($) {
  for (let waited = 0; conversation.turn !== undefined && waited < TURN_ENDS; waited += PAUSE) await $.clock.sleep(PAUSE);
  if (conversation.turn !== undefined) return "turn";
  if (!conversation.isReminded) return "reminders";
  return boxRefusal($);
}

export async function carryOut($, order) {
  switch (order.kind) {
    case "read_draft": {
      const { text, cursor } = await $.prompt.read();
      return { outcome: "draft", text, cursor };
    }
    case "fill_draft": {
      const before = await boxRefusal($);
      if (before !== undefined) return { outcome: "filled", filled: false, refusal: before };
      const { isFilled, refusal } = await $.prompt.fill({ text: order.text, cursor: order.cursor });
      return { outcome: "filled", filled: isFilled, refusal };
    }
    case "probe": {
      const refusal = await probe($);
      return { outcome: "filled", filled: refusal === undefined, refusal };
    }
    case "submit_prompt": {
      const refusal = await submitRefusal($);
      if (refusal !== undefined) return { outcome: "refused", refusal };
      try {
        const { drop } = await $.prompt.submit({ text: order.text, asUser: true });
        return drop === undefined ? { outcome: "submitted" } : { outcome: "failed", why: drop };
      } catch (error) {
        return { outcome: "unsure", why: `${error}` };
      }
    }
    case "replace_conversation":
      return order.when === "next_step" ? replaceAtNextStep($, order, conversation) : replaceConversation($, order, conversation);
    case "restore_trigger":
      await restore($);
      return { outcome: "restored" };
    default:
      return { outcome: "failed", why: `this bridge does not know the order ${order.kind}` };
  }
}
