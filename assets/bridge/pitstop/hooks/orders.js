// The bridge's orders: what the pitstop that hosts this session may have done in it.
//
// What it may do: read the prompt box, fill it where it is empty and no dialog has the keys, and what `replace.js` and
// `trigger.js` name.

import { replaceAtNextStep, replaceConversation } from "./replace.js";
import { restore } from "./trigger.js";

// What `register.js` has seen of the conversation.
export const conversation = {
  // The id of the turn that runs, if one does.
  turn: undefined,
  // How many calls of tools have ended since it was replaced last.
  calls: Infinity,
};

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
    case "replace_conversation":
      return order.when === "next_step" ? replaceAtNextStep($, order, conversation) : replaceConversation($, order, conversation);
    case "restore_trigger":
      await restore($);
      return { outcome: "restored" };
    default:
      return { outcome: "failed", why: `this bridge does not know the order ${order.kind}` };
  }
}
