// Where the pitstop that hosts this session is called, and by which right.
//
// What it may do: read the files that PITSTOP_BRIDGE names and the session id, and call the Unix socket named there. The first file
// that is there counts: a supervisor that had to move its socket has written it again, or into the other directory. So it is read
// again whenever a call has failed.

export async function find($) {
  const files = (await $.env.get("PITSTOP_BRIDGE")) ?? "";
  for (const file of files.split("\n")) {
    const text = await $.fs.read(file).catch(() => "");
    const [socketPath, token] = text.split("\n");
    if (token) return { socketPath, token };
  }
  throw new Error("no pitstop");
}

// A fork and a spare process of the client load this file too, and each mod has its own: each is known by this name.
const INSTANCE = Math.random().toString(36).slice(2) + Math.random().toString(36).slice(2);

let place;

// Sends a message of the bridge and returns the answer. After a failure the place is looked up again.
export async function post($, name, fields) {
  try {
    place ??= await find($);
    const session = await $.session.id();
    const response = await $.http.fetch(`http://pitstop/bridge/${name}`, {
      method: "POST",
      socketPath: place.socketPath,
      headers: { "content-type": "application/json", authorization: `Bearer ${place.token}` },
      body: JSON.stringify({ session, instance: INSTANCE, ...fields }),
    });
    if (!response.ok) throw new Error(`${response.status}`);
    return JSON.parse(response.text);
  } catch (error) {
    place = undefined;
    throw error;
  }
}
