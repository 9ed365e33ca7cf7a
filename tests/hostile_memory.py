"""Memories whose answers would take over a page that took them for more than texts."""

ATTACKS = (
    "<script>document.title = 'taken'</script>",
    "</script><script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title = 'taken'\">",
    "\u202eelttil eht fo thgir\u2066",
    "a\u2028b\u2029c\x00d\x1b[31me",
    "lone \ud800 surrogate &lt;b&gt; &amp; $x_{$",
    "<!--<script>",
)
LONG = 1_000_000
"""Characters of the answer that no page can hold."""


class Hostile:
    """Keeps everything, and says it in the worst of ways; every tenth case is also told a million characters."""

    name = "<i>hostile</i> $_{"

    def __init__(self):
        self.cases = 0

    def reset(self):
        self.facts = []
        self.cases += 1
        self.long = self.cases % 10 == 1

    def inscribe(self, text):
        self.facts.append(text)
        return len(self.facts)

    def recall_texts(self, query, k=5):
        found = [*ATTACKS, *(f"<b>{fact}" for fact in self.facts[: k - len(ATTACKS) - 1])]
        if self.long:
            self.long = False
            found.append("x" * (LONG // 2) + " ".join(self.facts) + "y" * (LONG // 2))
        return found

    def supersede(self, old, new):
        self.facts.append(new)

    def release(self, query):
        raise RuntimeError("<script>document.title = 'taken'</script>\u202e")

    def purge(self, query):
        return 3


class Leaky(Hostile):
    """Keeps everything and says it plainly, facts in their order."""

    name = "leaky"

    def recall_texts(self, query, k=5):
        return self.facts[:k]

    def release(self, query):
        return 0
