// Talks with the lab: news by server-sent events, changes by PATCH with the token.

const KEY = "linklab-token";
const RETRY_MS = 3000;

// The token comes in the URL's fragment, which no server and no referrer sees. It moves to the tab's
// storage, so that nobody reads it in the address bar, and a reload still has it.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) !== null;
}

export const setToken = (token) => sessionStorage.setItem(KEY, token);

async function fetched(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Error("the lab does not answer");
  }
}

// Returns the lab's words; throws an Error with its words, `isToken` if the token is not the lab's.
export async function send(path, content) {
  const answer = await fetched(path, {
    method: "PATCH",
    headers: { "Content-Type": "application/json", "X-Linklab": sessionStorage.getItem(KEY) ?? "" },
    body: JSON.stringify(content),
  });
  const said = await answer.json();
  if (answer.ok) return said.done;
  const words = [said.field ? `${said.field}: ${said.error}` : said.error, said.allowed && `allowed: ${said.allowed}`];
  throw Object.assign(new Error(words.filter(Boolean).join("; ")), { isToken: answer.status === 403 });
}

export async function scenario(name, from) {
  const answer = await fetched(`/scenario?${new URLSearchParams({ name, from })}`);
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer.blob();
}

// Says why there is no stream, which a browser tells nobody.
async function whyLost() {
  try {
    const answer = await fetch("/status");
    if (answer.ok) return "Too many pages of this lab are open: close one.";
    return `The lab answers with ${answer.status}.`;
  } catch {
    return "The lab has ended, or cannot be reached.";
  }
}

// Calls `onNews` with each message, and `onLost` with words, or null once the lab answers again. A tab
// that nobody sees has no stream: a browser opens six connections to a lab only.
export function follow(onNews, onLost) {
  let source = null;
  let timer = 0;
  const open = () => {
    clearTimeout(timer);
    if (document.hidden || source !== null) return;
    source = new EventSource("/news");
    source.onmessage = (message) => {
      onLost(null);
      onNews(JSON.parse(message.data));
    };
    source.onerror = async () => {
      source?.close();
      const why = await whyLost();
      source = null;
      onLost(`${why} Trying again…`);
      timer = setTimeout(open, RETRY_MS);
    };
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return open();
    clearTimeout(timer);
    source?.close();
    source = null;
  });
  open();
}
