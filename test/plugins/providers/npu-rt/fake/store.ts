import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

export const ASR = 'whisper-v3:turbo'
export const EMBED = 'embed-gemma:300m'

/** Some of what it can fetch, with the folder of each. */
const folders: Readonly<Record<string, string>> = {
  'gemma3:1b': 'Gemma3-1B-NPU2',
  'gemma3:4b': 'Gemma3-4B-NPU2',
  'llama3.2:1b': 'Llama-3.2-1B-NPU2',
  'llama3.2:3b': 'Llama-3.2-3B-NPU2',
  [ASR]: 'Whisper-V3-Turbo-NPU2',
  [EMBED]: 'Embedding-Gemma-300M-NPU2'
}
const files = ['config.json', 'model.q4nx', 'tokenizer.json', 'tokenizer_config.json']

export const tags: readonly string[] = Object.keys(folders)

/** Also a family alone: it means the first of its sizes. */
export function isKnown (tag: string): boolean {
  return tags.some(known => known === tag || known.startsWith(`${tag}:`))
}

export function resolveTag (tag: string): string {
  const bare = tag.slice(tag.indexOf('/') + 1)
  return tags.find(known => known === bare || known.startsWith(`${bare}:`)) ?? 'llama3.2:1b'
}

function folderOf (tag: string): string {
  return join(process.env.FLM_MODEL_PATH ?? join(homedir(), '.config/flm'), 'models', folders[tag]!)
}

export function isInstalled (tag: string): boolean {
  return files.every(file => existsSync(join(folderOf(tag), file)))
}

/** Where the real one goes to the hub. */
export function fetchModel (tag: string): void {
  mkdirSync(folderOf(tag), { recursive: true })
  for (const file of files) writeFileSync(join(folderOf(tag), file), '')
}
