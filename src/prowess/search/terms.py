"""Strings as words: how the text of a skill is written into the index, and which terms a request consists of.

SQLite's tokenizer ``porter unicode61`` splits a string at spaces and signs, folds case and accents, and stems English
words. This module does before that what the tokenizer cannot: it splits compounds such as ``camelCase``, and writes
scripts without spaces between words as pairs of characters.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prowess.limits import MAX_NAME_LENGTH
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.limits import Limits

    class Searchable(Protocol):
        """What can be searched: a skill, or the entry of a skill in an index."""

        @property
        def name(self) -> str: ...

        @property
        def description(self) -> str: ...

        @property
        def tags(self) -> tuple[str, ...]: ...

        @property
        def metadata(self) -> Mapping[str, str]: ...


INDEX_TEXT_VERSION = 3
"""Changes when the texts of a skill are written into the index in another way, so that every index is built again."""
USUAL_HEAD_WORDS, USUAL_TEXT_WORDS = 100, 600
"""How many different words the head of a skill, and the whole skill, may have before all of them count for less. Of 100
real skills about one has more. Otherwise a skill that lists the words of everybody's requests would be found by all."""
USUAL_HEAD_REACH, USUAL_TEXT_REACH = 330, 1_450
"""The same for ``measure_reach``: few words are enough if they are those of everybody's requests."""
_PAIR = 2

# Words that requests and descriptions of every kind have: they cost time, and say nothing about what is wanted.
STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before but by can could did do does each for from get
    give got had has have help here how i if in into is it its just let like make me more most my need new no not now of
    on one only or other our out over per please same see should show so some such than that the their them then there
    these they this to too up us use using very via want was we were what when where which while who will with would
    you your don ve
    """.split()  # noqa: SIM905 - a list of words reads better as one string
)


def drop_exclusions(description: str) -> str:
    """Return a description without the clauses that say what the skill is not for, such as "Do not use for …".

    A request with the words of such a clause must not find the skill by them.
    """
    return _exclusion().sub("", description)


@cache
def _exclusion() -> re.Pattern[str]:
    """Return the pattern of a clause that says what a skill is not for; only a skill that is indexed needs it."""
    # Only the first place of a run of whitespace can begin it: a description may have thousands of line breaks.
    return compile_pattern(
        r"(?:^|(?<=[.;!?(\u2014\u2013])|(?<=\S)(?=[^\S\n]*+\n))\s*+"
        r"(?:do not|don['\u2019]t|never) (?:use|trigger|invoke|activate|apply|load)\b"
        r"(?:[^.;!?\s]|[^\S\n]++(?=[^.;!?\s]))*+",
        re.IGNORECASE,
    )


def make_index_text(text: str) -> str:
    """Return a string as the index takes it: compounds split, and scripts without spaces as pairs of characters."""
    text = text.replace("\0", " ")
    if not text.islower():
        text = _compound().sub(r"\1 ", text)
    if text.isascii():
        return text
    # Half of a surrogate pair cannot be stored.
    return _unspaced_run().sub(_write_pairs, text.encode("utf-8", "ignore").decode())


@cache
def _compound() -> re.Pattern[str]:
    """The pattern of the last character of a part of a compound such as ``camelCase``. It is compiled on first use."""
    return re.compile(r"([a-z0-9])(?=[A-Z])")


@cache
def _unspaced_run() -> re.Pattern[str]:
    """Return the pattern of characters that are written without spaces between words.

    These are kana, Chinese characters, Hangul, and the scripts of Thai, Lao, Burmese and Khmer. The pattern
    is compiled on first use, which takes as long as a search in English.
    """
    return re.compile("[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


def _write_pairs(run: re.Match[str]) -> str:
    characters = run[0]
    return f" {' '.join(characters[at : at + 2] for at in range(len(characters) - 1)) or characters} "


def find_words(text: str) -> set[str]:
    """Return the words of a text of an index, in lower case. Pairs of characters are not words."""
    return {word for word in _word().findall(text.lower()) if word.isascii() or len(word) > _PAIR}


def measure_reach(words: set[str]) -> int:
    """Return how much words count in requests of every kind: the sum of the weights of ``request_words``."""
    weights = _request_weights()
    return sum(weights.get(start, 0) for start in {word[:LETTERS] for word in words - STOP_WORDS})


@cache
def _request_weights() -> dict[str, int]:
    return {start: weight for weight, starts in WEIGHTS.items() for start in starts.split()}


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word; only a skill that is indexed needs it."""
    return compile_pattern(r"[^\W_]++")


def split_request(request: str) -> list[str]:
    """Return the words of a request in lower case, each once, without those that say nothing.

    A request of nothing but such words is searched by them.
    """
    # No pattern: to compile one takes longer than to look at the few characters of a request.
    letters = [letter if letter.isalnum() else " " for letter in make_index_text(request).lower()]
    words = list(dict.fromkeys("".join(letters).split()))
    significant = [word for word in words if word not in STOP_WORDS and (len(word) > 1 or not word.isascii())]
    return significant or words


class SkillText(NamedTuple):
    """The texts of one skill, and the state of the file or entry that they were read from."""

    name: str
    description: str
    labels: str = ""
    """Tags, triggers and keywords, with spaces between."""
    body: str = ""
    """The beginning of the instructions, ``Limits.max_indexed_chars`` at most."""
    state: str = ""
    """A text that differs when the file or entry may have changed."""
    settled: bool = True
    """False when the state may stay as it is although the file changes once more."""

    @property
    def searched_name(self) -> str:
        """As much of the name as the specification allows. A lenient scan takes longer names."""
        return self.name[:MAX_NAME_LENGTH]

    def make_index_head(self) -> str:
        """Return the description and the labels as the index takes them."""
        return make_index_text(f"{drop_exclusions(self.description)}\n{self.labels}")

    def to_encode(self) -> str:
        """Return the text from which the vector of the skill is made."""
        return f"{self.searched_name.replace('-', ' ')}\n{self.description}\n{self.body}"

    def cut(self, limits: Limits) -> SkillText:
        """Return the strings, cut to what a search looks at. So no skill is found by every word that exists."""
        most = limits.max_indexed_description_chars
        return self._replace(
            description=self.description[:most], labels=self.labels[:most], body=self.body[: limits.max_indexed_chars]
        )

    def hash(self) -> bytes:
        """Return the hash under which the vector of the skill is kept."""
        from hashlib import blake2b

        return blake2b(self.to_encode().encode("utf-8", "surrogatepass"), digest_size=16).digest()


def tags_of(skill: Searchable, limits: Limits) -> tuple[str, ...]:
    """The first tags of the fields ``tags`` and ``metadata.tags``, each once: at most ``Limits.max_indexed_tags``."""
    return list_tags(skill)[: limits.max_indexed_tags]


def list_tags(skill: Searchable) -> tuple[str, ...]:
    """Return every tag of the fields ``tags`` and ``metadata.tags``, each once."""
    written = skill.metadata.get("tags", "").strip("[]")
    more = (tag.strip().strip("\"'") for tag in written.split(","))
    return tuple(dict.fromkeys((*skill.tags, *(tag for tag in more if tag))))


LETTERS = 5
"""As many letters of a word count: so ``create`` and ``creating`` are one, as they are for the index."""
WEIGHTS = {
    32: """
        go retur run servi write
    """,
    16: """
        add app appro build chang check code confi data datab error every field file fix func funct handl http
        id int inter json keep last md month must net order packa page plan proce produ proje re repor resul
        revie sessi set skill start strin struc team tell test three two user users value
    """,
    8: """
        accep activ actua added agent ai alrea analy anyth api archi asks audit avail back both break bundl
        cache call calle calls canno ci clean cli close colle colum com comma commi compa compl conne conta
        conte conve corre creat curre custo dashb days db defau defin depen deplo desig diffe direc docum done
        email end engin err even event exact exist expla fails featu few files final find finis first flow follo
        forma found full gener git good happe high https hub imple impro inclu index input insta issue job know
        launc lead line list log look main map marke messa minut name needs never next nil numbe open optio os
        outpu pass passe path payme platf plugi point postg print provi publi put ran rate read recor relea repo
        repos reque requi respo right runni saa save says secon serve shows small somet spec sql state statu
        step still store succe sure syste targe task throu time times tool total trace trans txt type under
        updat uses valid verif versi way week wheth why witho work workf works wrong
    """,
    4: """
        acces accou acros actio addin addre admin adopt again ago alert alway amoun anoth answe appli apply
        aroun ask attem autho autom based behav being best bette betwe big block board body branc brand broke
        budge bug busin calcu calli cance captu case chain chann claim class claud clear clien codeb color comme
        compe compo compu conce const consu conti contr copy core count crash crite csv day debug decid decis
        delet deliv descr detai devel diagn diff disco doesn doing down downl draft durat durin edit else emplo
        empty endpo enter entry envir etc eval evalu evide examp execu expec exper explo expor expos exter extra
        fail faile faili failu faste feels fetch figur fine five flag flat focus folde form four frame free gets
        getti given going googl graph green hand hando heade healt hour hours human ident impor incre insid
        inste instr integ inval inven items js keeps key landi large layer leade least level libra lifec limit
        lines link live ll load local logge loggi logs long looks loop lot maint manag many match max may means
        measu meeti memor merge metho metri migra missi mode model modul move multi names night nobod node nodes
        non notes nothi notic notif obser off old onboa opens opera origi own owner pages panic param parse
        patte pdf peopl perfo perso phase pick pipel place plus polic pool port porta posit post power pr prese
        prici prima priva probl profi progr promp proof prope propo prove quart query quest range raw reach
        react reade readi reads ready real recei recom recov red redes reduc refer regis remov rende resol reten
        rewri risk root route row rows runs runti safe say scaff schem score scree scrip searc secti secur selec
        sell send separ seque setti sever share shell ship shipp showi signa signu simpl simul singl slow solut
        solve someo sourc space speci src stand stop sub subsc sugge summa suppo suspe table take tasks teamm
        teams tenan tests text think third those thoug threa timeo title today top track traff true trust try
        turn until used var varia walk wants web weeks whole windo withi worke writi yaml year yet
    """,
    2: """
        accur artif askin assig audie auth authe auto avoid backe base basel basic batch begin behin bound built
        cases cause cd choos click compi condi conse consi cover criti cut cycle date detec dev docs drive dynam
        excep expli false filte finan fixed flags fresh front gate githu grace helpe histo idea image infra
        initi injec inves invoi jobs label langu laten later lates learn locat manua mark micro minim mobil
        monit much named nativ neede netwo objec once ones optim organ outco paral parti party persi phone plann
        posts pract predi prepa previ prior profe promo proto push py pytho quali queri queue quick reaso regio
        regre relat remem repli repre resea rest retri retry rules sales sampl scan sched scope self setup short
        sign site size slack snaps socia spend stack stati steps strat style submi super switc sync techn templ
        token tools treat trigg types upgra url usage visua watch worki writt years zero
    """,
}
"""By weight: in how many of 100 requests a word is, times how much it counts in a library, to a power of two. These are
the 758 that weigh most in 2,035 labelled requests of many kinds, for a library of 9,532 skills."""
