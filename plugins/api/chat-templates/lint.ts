import { parse, Template, tokenize } from '@huggingface/jinja'
import { samples, type Sample } from './samples.js'
import { tagsOf, unclosed, type Tag } from './tags.js'

export interface LintResult {
  readonly valid: boolean
  readonly error: string | null
  /** Of the tag at fault, from 1; null where none can be told. */
  readonly line: number | null
  /** What the template cannot do that others can. */
  readonly warnings: readonly string[]
}

/** What the library parses to, as far as it is read here: its own types cannot be resolved. */
interface Node { readonly type: string }
interface Token { readonly type: string }

interface Outcome {
  readonly text: string | null
  readonly message: string
  readonly line: number | null
  /** The template said so itself. */
  readonly deliberate: boolean
}

/**
 * Parses a chat template and renders it on sample conversations, as an engine would. Takes as long as the template
 * does: call it where it can be stopped (lint-process.ts). Pure but for `strftime_now`.
 */
export function lint (source: string): LintResult {
  if (source.trim() === '') return invalid('is empty', null)
  const broken = syntaxProblem(source)
  if (broken !== null) return invalid(broken.message, broken.line)
  const warnings: string[] = []
  for (const sample of samples) {
    const { text, message, line, deliberate } = render(source, sample)
    const where = line === null ? '' : ` (line ${line})`
    if (text === null && (sample.need === 'must' || (sample.need === 'may' && !deliberate))) {
      return invalid(deliberate ? `refuses ${sample.what}: ${message}` : `${sample.what}: ${message}`, line)
    }
    if (text === null) {
      warnings.push(`${deliberate ? 'refuses' : 'cannot render'} ${sample.what}: ${message}${where}`)
      continue
    }
    const lost = sample.holds.find(piece => !text.includes(piece))
    if (lost === undefined) continue
    if (sample.need === 'must') return invalid(`${sample.what}: a message does not show in the result`, null)
    warnings.push(`${sample.what}: not everything shows in the result`)
  }
  return { valid: true, error: null, line: null, warnings }
}

function invalid (error: string, line: number | null): LintResult {
  return { valid: false, error, line, warnings: [] }
}

/** The parser's own message, at the tag that it had come to. */
function syntaxProblem (source: string): { readonly message: string, readonly line: number | null } | null {
  const tags = tagsOf(source)
  let tokens: Token[]
  try {
    tokens = tokensOf(source)
  } catch (error) {
    const open = unclosed(source)
    if (open !== null && !open.closed) return { message: `${named(open)} is never closed`, line: open.line }
    return { message: messageOf(error), line: lineOfToken(source) }
  }
  let reached = 0
  const watched = new Proxy(tokens, {
    get (target, key, receiver) {
      const index = typeof key === 'string' ? Number(key) : NaN
      if (Number.isInteger(index)) reached = Math.max(reached, index)
      return Reflect.get(target, key, receiver) as unknown
    }
  })
  try {
    parse(watched as never)
    return null
  } catch (error) {
    const open = unclosed(source)
    if (reached >= tokens.length) {
      return { message: open === null ? 'ends too early' : `{% ${open.keyword} %} is never closed`, line: open?.line ?? tags.at(-1)?.line ?? 1 }
    }
    const passed = tokens.slice(0, reached + 1).filter(isTagToken).length
    return { message: messageOf(error), line: tags[passed - 1]?.line ?? null }
  }
}

function render (source: string, sample: Sample): Outcome {
  const template = new Template(source)
  const state = { line: null as number | null, raised: false }
  watchTags(template, source, line => { state.line = line })
  watchRaises(template.parsed, () => { state.raised = true })
  try {
    return { text: template.render({ ...sample.input }), message: '', line: null, deliberate: false }
  } catch (error) {
    return { text: null, message: messageOf(error), line: state.line, deliberate: state.raised }
  }
}

/** Tells the line of every tag as it is rendered. The interpreter looks at the type of each node, so the type tells. */
function watchTags (template: Template, source: string, reach: (line: number) => void): void {
  const tags = tagsOf(source)[Symbol.iterator]()
  const blocks = tokensOf(source)
    .filter(token => token.type === 'Text' || isTagToken(token))
    .map(token => token.type === 'Text' ? null : tags.next().value as Tag | undefined ?? null)
  new TagWalk(blocks, reach).visit((template.parsed as { body: Node[] }).body)
}

/** Goes through the blocks of a template in the order of its text, and through the nodes that were made of them. */
class TagWalk {
  readonly #blocks: ReadonlyArray<Tag | null>
  readonly #reach: (line: number) => void
  #at = 0

  constructor (blocks: ReadonlyArray<Tag | null>, reach: (line: number) => void) {
    this.#blocks = blocks
    this.#reach = reach
  }

  visit (nodes: readonly Node[]): void {
    for (const node of nodes) this.#visitOne(node, this.#next())
  }

  #visitOne (node: Node, tag: Tag | null): void {
    const { type } = node
    const parts = node as { body?: Node[], alternate?: Node[], defaultBlock?: Node[], value?: unknown }
    if (type === 'If') this.#visitIf(parts)
    else if (type === 'For') {
      this.visit(parts.body!)
      if (this.#next()?.keyword === 'else') {
        this.visit(parts.defaultBlock!)
        this.#next()
      }
    } else if (['Macro', 'CallStatement', 'FilterStatement'].includes(type) || (type === 'Set' && parts.value === null)) {
      this.visit(parts.body!)
      this.#next()
    }
    if (tag !== null) onType(node, () => this.#reach(tag.line))
  }

  #visitIf ({ body, alternate }: { body?: Node[], alternate?: Node[] }): void {
    this.visit(body!)
    const next = this.#next()
    if (next?.keyword === 'elif') {
      const [inner] = alternate!
      const parts = inner as { body?: Node[], alternate?: Node[] }
      this.#visitIf(parts)
      onType(inner!, () => this.#reach(next.line))
    } else if (next?.keyword === 'else') {
      this.visit(alternate!)
      this.#next()
    }
  }

  #next (): Tag | null {
    return this.#blocks[this.#at++] ?? null
  }
}

/** A template that calls raise_exception means it. */
function watchRaises (value: unknown, raised: () => void, seen = new Set<unknown>()): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return
  seen.add(value)
  const node = value as { type?: string, value?: unknown }
  if (node.type === 'Identifier' && node.value === 'raise_exception') onType(node as Node, raised)
  const inner = value instanceof Map ? [...value.keys(), ...value.values()] : Object.values(value)
  for (const item of inner) watchRaises(item, raised, seen)
}

function onType (node: Node, look: () => void): void {
  const { type } = node
  Object.defineProperty(node, 'type', {
    enumerable: true,
    configurable: true,
    get: () => {
      look()
      return type
    }
  })
}

/** As `Template` does it. */
function tokensOf (source: string): Token[] {
  return tokenize(source, { lstrip_blocks: true, trim_blocks: true }) as unknown as Token[]
}

function isTagToken (token: Token): boolean {
  return token.type === 'OpenStatement' || token.type === 'OpenExpression' || token.type === 'Comment'
}

/** Where the tokeniser fails: the first line after which it fails with the same words. */
function lineOfToken (source: string): number | null {
  const lines = source.split('\n')
  const failure = (count: number): string => {
    try {
      tokensOf(lines.slice(0, count).join('\n'))
      return ''
    } catch (error) {
      return messageOf(error)
    }
  }
  const wanted = failure(lines.length)
  let [low, high] = [1, lines.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (failure(middle) === wanted) high = middle
    else low = middle + 1
  }
  return low
}

function named ({ kind, keyword }: Tag): string {
  return kind === 'comment' ? 'a comment' : kind === 'expression' ? '{{' : `{% ${keyword}`
}

function messageOf (error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/^Parser Error: /, '')
}
