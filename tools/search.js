
// Appended to the theme's search worker, which ranks a name no higher than longer names that begin with its words.
{
  const [SET_UP, ASK, ANSWER] = [0, 2, 3];
  const ENTRY = /(^|\/)(options|errors|command-line)\/#/;
  const search = self.onmessage;
  const answer = self.postMessage.bind(self);
  let names = [];
  let asked = "";

  self.onmessage = (message) => {
    const { type, data } = message.data;
    if (type === SET_UP) {
      names = data.items.map(({ location, title }) => ENTRY.test(location) && title.replace(/<[^>]*>/g, "").toLowerCase());
    }
    if (type === ASK) asked = (data.input ?? "").trim().toLowerCase();
    search(message);
  };
  self.postMessage = (message) => {
    if (message.type === ANSWER) message.data.items.sort((one, other) => (names[other.id] === asked) - (names[one.id] === asked));
    answer(message);
  };
}
