// A person's prompt that waits before it is sent, where pitstop wants to be asked: after a pause it may be dear.
//
// What it may do: read the prompt that is submitted, ask what `socket.js` calls, and have the client put a prompt back into the box
// instead of sending it.

import { post } from "./socket.js";

// Whether pitstop wants to be asked, as its answers say.
export const prompts = { asks: false };

const TEXT_LIMIT = 65536;

// Numbers the prompts of this process that were asked about.
let asked = 0;

// Why a prompt goes back into the box, if so: the client puts it there itself. The question is asked again until it is answered, as
// one call is cut off after 30 s. In a running turn the service has the conversation at hand.
export async function refusal($, { text, origin, turnId }) {
  if (!prompts.asks || origin.kind !== "composer" || turnId !== undefined) return undefined;
  asked += 1;
  const question = { prompt: asked, text: text.slice(0, TEXT_LIMIT) };
  for (;;) {
    const { decision, why } = await post($, "prompt", question);
    if (decision !== "wait") return decision === "skip" ? why : undefined;
  }
}
