import type { FlagGrammar } from 'svc-gateway/plugin'
import { mtpFlags } from './mtp-flags.js'

/**
 * Spellings of one llama-server flag, canonical first, without dashes. A switch and its negation are one flag:
 * whichever stands last counts, as in the server itself.
 */
const spellings: ReadonlyArray<readonly [string, ...string[]]> = [
  ['model', 'm'],
  ['model-url', 'mu'],
  ['docker-repo', 'dr'],
  ['hf-repo', 'hf', 'hfr'],
  ['hf-file', 'hff'],
  ['hf-token', 'hft'],
  ['alias', 'a'],
  ['ctx-size', 'c'],
  ['predict', 'n', 'n-predict'],
  ['batch-size', 'b'],
  ['ubatch-size', 'ub'],
  ['parallel', 'np'],
  ['threads', 't'],
  ['threads-batch', 'tb'],
  ['cpu-mask', 'C'],
  ['cpu-range', 'Cr'],
  ['cpu-mask-batch', 'Cb'],
  ['cpu-range-batch', 'Crb'],
  ['flash-attn', 'fa'],
  ['cache-type-k', 'ctk'],
  ['cache-type-v', 'ctv'],
  ['defrag-thold', 'dt'],
  ['kv-unified', 'kvu', 'no-kvu', 'no-kv-unified'],
  ['kv-offload', 'kvo', 'nkvo', 'no-kv-offload'],
  ['repack', 'nr', 'no-repack'],
  ['op-offload', 'no-op-offload'],
  ['mmap', 'no-mmap'],
  ['load-mode', 'lm'],
  ['lazy-mode', 'lzm'],
  ['device', 'dev'],
  ['n-gpu-layers', 'ngl', 'gpu-layers'],
  ['split-mode', 'sm'],
  ['tensor-split', 'ts'],
  ['main-gpu', 'mg'],
  ['override-tensor', 'ot'],
  ['cpu-moe', 'cmoe'],
  ['n-cpu-moe', 'ncmoe'],
  ['n-cpu-ffn', 'ncffn'],
  ['fit-target', 'fitt'],
  ['fit-ctx', 'fitc'],
  ['perf', 'no-perf'],
  ['escape', 'e', 'no-escape'],
  ['cont-batching', 'cb', 'nocb', 'no-cont-batching'],
  ['context-shift', 'no-context-shift'],
  ['cache-prompt', 'no-cache-prompt'],
  ['cache-idle-slots', 'no-cache-idle-slots'],
  ['cache-ram', 'cram'],
  ['ctx-checkpoints', 'ctxcp', 'swa-checkpoints'],
  ['checkpoint-min-step', 'cms'],
  ['warmup', 'no-warmup'],
  ['slots', 'no-slots'],
  ['slot-prompt-similarity', 'sps'],
  ['timeout', 'to'],
  ['ui', 'webui', 'no-ui', 'no-webui'],
  ['agent', 'ag', 'no-agent', 'no-ag'],
  ['verbose', 'v', 'log-verbose'],
  ['verbosity', 'lv', 'log-verbosity'],
  ['log-prefix', 'no-log-prefix'],
  ['log-timestamps', 'no-log-timestamps'],
  ['embedding', 'embeddings'],
  ['reranking', 'rerank'],
  ['jinja', 'no-jinja'],
  ['reasoning', 'rea'],
  ['reasoning-preserve', 'no-reasoning-preserve'],
  ['skip-chat-parsing', 'no-skip-chat-parsing'],
  ['prefill-assistant', 'no-prefill-assistant'],
  ['mmproj', 'mm'],
  ['mmproj-url', 'mmu'],
  ['mmproj-auto', 'no-mmproj', 'no-mmproj-auto'],
  ['mmproj-offload', 'no-mmproj-offload'],
  ['mmproj-device', 'mmdev'],
  ['seed', 's'],
  ['temperature', 'temp'],
  ['top-n-sigma', 'top-nsigma'],
  ['typical-p', 'typical'],
  ['sampler-seq', 'sampling-seq'],
  ['logit-bias', 'l'],
  ['json-schema', 'j'],
  ['json-schema-file', 'jf'],
  ['backend-sampling', 'bs'],
  ['reverse-prompt', 'r'],
  ['special', 'sp'],
  ['lookup-cache-static', 'lcs'],
  ['lookup-cache-dynamic', 'lcd'],
  ['spec-draft-model', 'md', 'model-draft'],
  ['spec-draft-hf', 'hfd', 'hfrd', 'hf-repo-draft'],
  ['spec-draft-device', 'devd', 'device-draft'],
  ['spec-draft-ngl', 'ngld', 'gpu-layers-draft', 'n-gpu-layers-draft'],
  ['spec-draft-n-max', 'draft', 'draft-n', 'draft-max'],
  ['spec-draft-n-min', 'draft-min', 'draft-n-min'],
  ['spec-draft-p-min', 'draft-p-min'],
  ['spec-draft-p-split', 'draft-p-split'],
  ['spec-draft-type-k', 'ctkd', 'cache-type-k-draft'],
  ['spec-draft-type-v', 'ctvd', 'cache-type-v-draft'],
  ['spec-draft-threads', 'td', 'threads-draft'],
  ['spec-draft-threads-batch', 'tbd', 'threads-batch-draft'],
  ['spec-draft-poll', 'poll-draft'],
  ['spec-draft-poll-batch', 'poll-batch-draft'],
  ['spec-draft-prio', 'prio-draft'],
  ['spec-draft-prio-batch', 'prio-batch-draft'],
  ['spec-draft-cpu-moe', 'cmoed', 'cpu-moe-draft'],
  ['spec-draft-n-cpu-moe', 'ncmoed', 'n-cpu-moe-draft', 'spec-draft-ncmoe'],
  ['spec-draft-override-tensor', 'otd', 'override-tensor-draft']
]

const aliases: Readonly<Record<string, string>> = Object.fromEntries(
  spellings.flatMap(([canonical, ...others]) => others.map(other => [other, canonical]))
)

const presets = [
  'tts-oute-default', 'embd-bge-small-en-default', 'embd-e5-small-en-default', 'embd-gte-small-default', 'embd-gemma-default',
  'fim-qwen-1.5b-default', 'fim-qwen-3b-default', 'fim-qwen-7b-default', 'fim-qwen-7b-spec', 'fim-qwen-14b-spec', 'fim-qwen-30b-default',
  'gpt-oss-20b-default', 'gpt-oss-120b-default', 'vision-gemma-4b-default', 'vision-gemma-12b-default'
]

// every way to say which model runs, where it listens, and how it is reached
const managed = [
  'model', 'model-url', 'hf-repo', 'hf-file', 'docker-repo', 'models-dir', 'models-preset', 'alias', 'ctx-size',
  'host', 'port', 'reuse-port', 'api-prefix', 'api-key', 'api-key-file', 'ssl-key-file', 'ssl-cert-file'
]
const fields = ['n-gpu-layers']

/** How llama-server's command line reads, for merging, provenance and guards. */
export const llamaFlags: FlagGrammar = {
  aliases,
  repeatable: [
    'lora', 'lora-scaled', 'draft-model', 'override-kv', 'override-tensor', 'control-vector', 'control-vector-scaled',
    'logit-bias', 'dry-sequence-breaker', 'reverse-prompt'
  ],
  // a preset sets all of it
  managed: [...managed, ...presets],
  managedEnv: ['LLAMA_API_KEY', ...[...managed, ...fields].map(flag => `LLAMA_ARG_${flag.replaceAll('-', '_').toUpperCase()}`)],
  fields,
  modes: { embedding: 'embedding', reranking: 'reranking' },
  mtp: mtpFlags
}

export interface Flag {
  /** Canonical name without dashes. */
  readonly name: string
  /** As it was written. */
  readonly spelling: string
  readonly values: readonly string[]
}

/** A word that begins with a dash is a flag, unless a digit follows: `-1` is a value. */
function isFlag (word: string): boolean {
  return /^--?[A-Za-z]/.test(word)
}

/** Reads a command line into flags with the values that follow each. Words before the first flag are left out. */
export function parseFlags (words: readonly string[]): Flag[] {
  const flags: Array<{ name: string, spelling: string, values: string[] }> = []
  for (const word of words) {
    if (!isFlag(word)) {
      flags.at(-1)?.values.push(word)
      continue
    }
    const [spelling, ...rest] = word.split('=')
    const bare = spelling!.replace(/^-+/, '')
    flags.push({ name: aliases[bare] ?? bare, spelling: spelling!, values: rest.length === 0 ? [] : [rest.join('=')] })
  }
  return flags
}
