// What the files of the page share: what the server returns, how elements are made, and who is here.

// Calls to the server

type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
/** A path with `{}` for each part that is not fixed, as in `Routes`. */
type PathShape<P extends string> = P extends `${infer Head}/${infer Tail}` ? `${PathPart<Head>}/${PathShape<Tail>}` : PathPart<P>;
type PathPart<P extends string> = string extends P ? "{}" : `${number}` extends P ? "{}" : P;
type Joined<T extends readonly string[]> = T extends readonly [infer Head extends string, ...infer Rest extends string[]]
  ? `/${Head}${Joined<Rest>}`
  : "";
type RouteOf<M extends Method, P extends string> = `${M} ${PathShape<P>}` extends infer R extends keyof Routes ? R : never;
/** A call of one method: the path decides what may be sent and what comes back. */
type Call<M extends Method> = <const P extends string>(path: P & ([RouteOf<M, P>] extends [never] ? never : unknown), body?: Routes[RouteOf<M, P>]["body"]) => Promise<Routes[RouteOf<M, P>]["reply"]>;

interface Upload {
  done: Promise<JobView>;
  abort(): void;
}
interface Followed {
  kinds?: string[];
  after?: number | null;
  event?(kind: string, data: any): void;
  statements?(now: StatementView[]): void;
  retrying?(line: string): void;
  end?(data: any): void;
  broken?(): void;
  back?(): void;
  parked?(): void;
}

// Elements

type Child = Node | string | number | boolean | null | undefined | Child[];
type Heard<E> = { [K in keyof HTMLElementEventMap]?: ((event: HTMLElementEventMap[K] & { currentTarget: E }) => unknown) | null };
type Props<E> = {
  on?: Heard<E> | null;
  class?: string | (string | false | null | undefined)[] | null;
  dataset?: Record<string, string | null | undefined>;
  style?: Record<string, string>;
  [attribute: string]: unknown;
};
type Click = MouseEvent & { currentTarget: HTMLButtonElement };
type ButtonProps = { kind?: string; icon?: string; on?: (event: Click) => unknown; [attribute: string]: unknown };
/** A control of a form. */
type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

// The page

interface App {
  me: MeResponse;
  go(hash: string): void;
  settle(hash: string): void;
  announce(words: string): void;
  toast(words: string, kind?: string): void;
  attempt(work: () => Promise<unknown>): Promise<boolean>;
  title(words: string): void;
  threadsChanged(): void;
  reviewsChanged(): void;
}
/** What the address says. */
type Params = Record<string, string>;
type Words = Record<string, string>;
/** Words, and what goes with them, by name. */
type Table = Record<string, string[]>;
type Pressed = HTMLButtonElement | null;
type Cleanup = () => unknown;
type EndMark = ReturnType<typeof import("../../src/assay/serve/web/lib/ui.js").atTheEnd>;
interface Place {
  name: string;
  hash: string;
  words: string;
  drawn: string;
  second?: boolean;
  counts?: string;
}
interface Tab {
  name: string;
  hash: string;
  words: string;
  admin?: boolean;
  counts?: string;
}
interface PagedOptions<T> {
  fetch(after: string): Promise<{ items: T[]; next: string; total?: number | null }>;
  row(item: T): Node;
  none(): Child;
  onCount?(total: number): void;
  label: string;
  look?: string;
}
type Sighting = IntersectionObserverEntry & { target: HTMLElement };

// `querySelector("details.menu[open]")` is a `details`
type Selected<S extends string> = S extends `${string},${string}`
  ? HTMLElement
  : S extends `${string} ${infer Last}`
    ? Selected<Last>
    : S extends `${infer Tag}${"."}${string}` | `${infer Tag}${"["}${string}` | `${infer Tag}${":"}${string}`
      ? Selected<Tag>
      : S extends keyof HTMLElementTagNameMap
        ? HTMLElementTagNameMap[S]
        : HTMLElement;
interface ParentNode {
  querySelector<const S extends string>(selectors: S): Selected<S> | null;
  querySelectorAll<const S extends string>(selectors: S): NodeListOf<Selected<S>>;
}

// Answers

/** A place in a document. */
type Opened = { document: string; title?: string; name?: string; start?: number | string | null; end?: number | string | null; page?: number | null };
type Spot = { start: number | null; end: number | null; page: number | null };
/** What a citation shows: words, and where they stand. */
type Source = Opened & { number?: number; quote: string; date?: string | null; flagged?: boolean; table?: TablePart | null };
type Piece = EvidenceView & { order?: number };
type Claim = ClaimView & { place?: number };
/** A claim and what is said of it, in an answer or in a draft. */
type Told = Claim | DraftClaimView;
/** A verdict and its reason. */
type Judged = { verdict: Verdict | null; why: string; by: string; quotation?: boolean; working?: WorkingView | null };
interface Context {
  app?: App;
  run?: string;
  openDocument(source: Opened, opener?: HTMLElement | null, back?: () => void): void;
}
interface TurnContext extends Context {
  app: App;
  openEvidence(run: string, opener?: HTMLElement | null): void;
  gathered(turn: Turn): void;
  changed(turn: Turn): void;
  again?(run: RunView, part: Partial<Asking>): unknown;
  edit?(run: string): unknown;
  before?(turn: Turn): Turn | undefined;
}
interface Turn {
  id: string;
  node: HTMLElement;
  heading: HTMLElement;
  run: RunView;
  pieces(): Piece[];
  close(): void;
  stop(pressed?: HTMLButtonElement | null): Promise<void>;
  suggest(ask: (question: string) => unknown): void;
  edit(): void;
}
type Cited = Map<number, CitationView>;
type Asking = AskRequest & { question: string };
type Preferences = ReturnType<typeof import("../../src/assay/serve/web/answers/composer.js").remembered>;
type Choose = (part: Partial<Preferences>) => void;
/** How an entry of a list that fills in is drawn; it is drawn anew when its `sign` changes. */
type Look = { sign: string; class?: string; children(): Child[] };

// Documents on their way

type Chosen = { file: File; path: string };
type Put = (files: Chosen[]) => unknown;
type ItemState = "queued" | "sending" | "waiting" | "reading" | "ready" | "unreadable" | "failed" | "cancelled";
interface Item {
  base: string;
  path: string;
  file: File | null;
  bytes: number;
  state: ItemState;
  fraction: number;
  why: string;
  note: string;
  pages: number;
  tries: number;
}
type Standing = ReturnType<typeof import("../../src/assay/serve/web/documents/uploads.js").standing>;
/** A stretch of a document's text that is on the page. */
type TextStretch = { start: number; end: number; nodes: HTMLElement[]; tables: (DocumentTable & { start: number; end: number })[] };
type DocumentTable = ReturnType<typeof import("../../src/assay/serve/web/documents/data_table.js").documentTable>;
type Erasure = { gone: string[]; failed: string[]; records: number; backups: Map<string, string> };

// Runs


type Story = ReturnType<typeof import("../../src/assay/serve/web/runs/story.js").begin>;
type SynthesisSoFar = ReturnType<typeof import("../../src/assay/serve/web/runs/stages.js").begun>;
type Timed = { shape: EventView; start: number; end: number; waited: number };
type Section = { name: string; events: Timed[] };
type Stream = { close(): void };
type Working = ReturnType<typeof import("../../src/assay/serve/web/answers/progress.js").workingView>;
type WorkingOptions = { stop?(pressed: HTMLButtonElement): unknown; openEvidence?(from: HTMLElement): void; delivered?: boolean };
/** What a kind of event changes in what is told of a run. */
type Taking<S> = { [K in keyof Recorded]?: (so: S, event: Recorded[K]) => void };
type Move = { id: string; kind: string; calls: { tool: string; words: string; rest: string[]; id: string; done: boolean; found: number; error: string; passages: string[] }[] };
type ToldClaim = { place: number; heading: string; words: string; quotation: boolean; verdict: Verdict | null; why: string; cites: string[]; by: string; state: string; was: string; told: string };
/** A statement of an answer that is being written; one without text is still being checked. */
type StatementView = { place: number; heading: string; opinion: boolean; text?: string; quotation?: boolean; cites?: string[] };
type LedgerColumn = ["evidence" | "insights" | "claims" | "relations", string];

interface Node {
  contains(other: EventTarget | null): boolean;
}
interface NumberConstructor {
  isFinite(value: unknown): value is number;
}
type Stage = { name: string; done: number; far: string; state: "done" | "now" | "later" };
