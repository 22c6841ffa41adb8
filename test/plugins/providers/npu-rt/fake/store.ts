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
/** Bytes of each file: no real weights. */
const sizes: Readonly<Record<string, number>> = {
  'config.json': 700, 'model.q4nx': 2_000_000, 'tokenizer.json': 300_000, 'tokenizer_config.json': 1200, 'vision_weight.q4nx': 500_000
}

/** In the order of its list. */
export function filesOf (tag: string): readonly string[] {
  return Object.keys(sizes).filter(file => file !== 'vision_weight.q4nx' || resolveTag(tag) === 'gemma3:4b')
}

export const tags: readonly string[] = Object.keys(folders)

/** Also a family alone: it means the first of its sizes. */
export function isKnown (tag: string): boolean {
  return tags.some(known => known === tag || known.startsWith(`${tag}:`))
}

export function resolveTag (tag: string): string {
  const bare = tag.slice(tag.indexOf('/') + 1)
  return tags.find(known => known === bare || known.startsWith(`${bare}:`)) ?? 'llama3.2:1b'
}

export function sizeOf (file: string): number {
  return sizes[file]!
}

export function nameOf (tag: string): string {
  return folders[resolveTag(tag)]!
}

export function pathOf (tag: string, file: string): string {
  return join(folderOf(tag), file)
}

export function folderOf (tag: string): string {
  return join(process.env.FLM_MODEL_PATH ?? join(homedir(), '.config/flm'), 'models', nameOf(tag))
}

/** It looks whether they are there, not how long they are. */
export function isInstalled (tag: string): boolean {
  return filesOf(tag).every(file => existsSync(pathOf(tag, file)))
}

/** Where `serve` goes to the hub; its files are empty, and whole for that. */
export function fetchModel (tag: string): void {
  mkdirSync(folderOf(tag), { recursive: true })
  for (const file of filesOf(tag)) writeFileSync(pathOf(tag, file), '')
}
