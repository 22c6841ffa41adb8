import { parseArgs } from 'node:util'

const flags = {
  quick: 'fewer and shorter rounds',
  json: 'print one JSON document in place of tables',
  lists: 'only the list routes of a home with 200 slots, 5,000 models and 50,000 audit rows',
  cold: 'only a request to a cold slot whose engine needs a second',
  replicas: 'only slots of several engines: four with 20 ms of work each beside one, and four hours of a seeded load in simulated time',
  start: 'only how long commands and the gateway take to start, what an idle gateway holds and uses, and which files each loads',
  tools: 'only tool calls and lists of tools, beside the example server of the protocol\'s own package',
  dialects: 'only what each dialect costs where the engine speaks chat alone, and chat over messages, beside chat that passes',
  million: 'only a bank of a million memories: what of it is in the memory of the process (4 GiB on disk for a few minutes)',
  quality: 'with --memory: only how much of it is found again, by the memory and by a Hindsight server, and neither size nor speed',
  peers: 'only the table of other gateways: those of nginx, llama-swap, litellm and portkey that are on PATH, or that SVC_BENCH_<NAME> names',
  help: 'this text'
} as const

export type BenchOptions = Readonly<Record<keyof typeof flags, boolean>> & {
  /** A file of LoCoMo. */
  readonly memory?: string
  /** Where another checkout was built into. */
  readonly against?: string
}

export const helpText = `Usage: npm run bench -- [options]

Measures the gateway against the least a Node proxy can do, in one run on one machine: only ratios mean anything.
Exit code 1 when a bar is missed.

${Object.entries(flags).map(([name, what]) => `  --${name.padEnd(13)} ${what}`).join('\n')}
  --memory FILE   only the embedded memory: how much of LoCoMo (FILE, its JSON) it finds again, beside a Hindsight server that is there,
                  100,000 memories in one bank, and what they hold up of a gateway with a chat stream through it, and 1,000 beside
                  a Hindsight server; --json has the shares as memory.hit_at_10.text, .vectors, .rerank and .hindsight, null where
                  nothing serves the step, which memory.missing then explains

  --against DIST  with --replicas: also a slot with one engine, in this build and in another, whose dist folder this is

Where they are installed it uses wrk to make the load and nginx as the upstream.
SVC_BENCH_MODELS: base URL of an OpenAI-compatible server, for the vectors and the rerank of --memory.
SVC_BENCH_HINDSIGHT: a Hindsight server of --memory that runs and takes its vectors from there; else test/engines/hindsight.sh
starts one, if it is installed.
SVC_BENCH_NGINX, SVC_BENCH_LLAMA_SWAP, SVC_BENCH_LITELLM, SVC_BENCH_PORTKEY: programs of --peers that are not on PATH.
`

/** Throws an error that names an unknown option, or one that is missing. */
export function readOptions (args: readonly string[]): BenchOptions {
  const options = Object.fromEntries(Object.keys(flags).map(name => [name, { type: 'boolean', default: false } as const]))
  const read = parseArgs({ args: [...args], options: { ...options, memory: { type: 'string' }, against: { type: 'string' } } }).values as unknown as BenchOptions
  if (read.quality && read.memory === undefined) throw new Error('--quality needs --memory FILE')
  return read
}
