// The trigger of the client's own compaction, lowered so far that the client compacts at the next step of the turn that runs.
//
// What it may do: read and set the four environment variables named here. What they held before stands in PITSTOP_TRIGGER until
// they are restored, where both mods see it.

// Lowers the trigger because of this order of pitstop's; says what stood there before, and why it cannot be lowered, if so. The client
// reads the variables before each of its requests, and with them the trigger is 1 % of the window, whatever its settings say of it
// (2.1.331).
export async function lower($, order) {
  const before = {
    order,
    window: await $.env.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW"),
    percent: await $.env.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"),
    off: await $.env.get("DISABLE_AUTO_COMPACT"),
  };
  const done = [
    await $.env.set("PITSTOP_TRIGGER", JSON.stringify(before)),
    await $.env.set("DISABLE_AUTO_COMPACT", undefined),
    await $.env.set("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "1000000"),
    await $.env.set("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "1"),
  ];
  return { before, deny: done.find(({ deny }) => deny)?.deny };
}

// The order by which the trigger is lowered, if it is.
export async function loweredBy($) {
  const before = await $.env.get("PITSTOP_TRIGGER");
  return before && JSON.parse(before).order;
}

// Sets the trigger back to where it was; says by which order it was lowered, if it was.
export async function restore($) {
  const text = await $.env.get("PITSTOP_TRIGGER");
  return text ? putBack($, JSON.parse(text)) : undefined;
}

// The same with what `lower` has said.
export async function putBack($, before) {
  await $.env.set("CLAUDE_CODE_AUTO_COMPACT_WINDOW", before.window);
  await $.env.set("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", before.percent);
  await $.env.set("DISABLE_AUTO_COMPACT", before.off);
  await $.env.set("PITSTOP_TRIGGER", undefined);
  return before.order;
}
