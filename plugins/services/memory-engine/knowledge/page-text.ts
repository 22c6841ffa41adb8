import { wireTime } from '../wire/times.js'
import type { KnowledgeNode, Page } from './node-table.js'

export const NO_CONTENT = 'No content yet.'

/** When what a page shows was last made, else when the page was. Pure. */
export function pageTime ({ node, model }: Page): string {
  return wireTime(model.lastRefreshedAt ?? node.createdAt)
}

/** A page as Markdown, with what is known of it in front. Pure. */
export function pageMarkdown (page: Page, empty: string): string {
  const { node, model } = page
  const facts = [['id', node.id], ['type', 'knowledge-page'], ['title', node.name], ['description', model.sourceQuery]]
  const head = [...facts, ...model.tags.length === 0 ? [] : [['tags', model.tags.join(', ')]], ['timestamp', pageTime(page)]]
  const body = model.content === '' ? empty : `\n${model.content}\n`
  return `${front(head as Array<[string, string]>)}${body}`
}

function front (facts: ReadonlyArray<readonly [string, string]>): string {
  return `---\n${facts.map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`).join('')}---\n`
}

/** What a bundle begins with, before a line for each of its nodes. Pure. */
export const indexHead = `${front([['type', 'index'], ['title', 'Knowledge base']])}\n# Knowledge base\n\n`

/** A node in the tree of a bundle. Pure. */
export function indexLine (node: KnowledgeNode, depth: number, description: string | null): string {
  return `${'  '.repeat(depth)}- ${node.kind === 'folder' ? `**${node.name}/**` : `[${node.name}](./${node.id}.md) — ${description ?? ''}`}\n`
}

/** The log of what a page held before begins so. Pure. */
export function logHead ({ node }: Page): string {
  return `${front([['type', 'log'], ['title', `${node.name} — history`]])}\n# ${node.name} — history\n`
}

/** What a page held until a change. Pure. */
export function logEntry (changedAt: number, content: string | null): string {
  return `\n## ${wireTime(changedAt)}\n\n${content === null || content === '' ? '_(empty)_' : content}\n`
}

const SNIPPET_CHARS = 240

const MOST_WORDS = 64

export interface PageMatch {
  readonly score: number
  readonly snippet: string
}

/** The words of a query, of which a search takes the first 64. Pure. */
export function wordsOf (query: string): readonly string[] {
  return [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])].slice(0, MOST_WORDS)
}

/** How well a page fits some words, from 0 to 1, and where. Pure. */
export function pageMatch ({ node, model }: Page, words: readonly string[]): PageMatch {
  const content = model.content.toLowerCase()
  const [name, about] = [node.name.toLowerCase(), model.sourceQuery.toLowerCase()]
  const fields: ReadonlyArray<readonly [string, number]> = [[name, 1], [content, 0.8], [about, 0.5]]
  const scores = words.map(word => Math.max(0, ...fields.map(([text, weight]) => text.includes(word) ? weight : 0)))
  const score = words.length === 0 ? 0 : scores.reduce((sum, each) => sum + each, 0) / words.length
  if (score === 0) return { score, snippet: '' }
  const places = words.map(word => content.indexOf(word)).filter(place => place >= 0)
  const at = Math.max(0, Math.min(...places, content.length) - 60)
  const from = at >= model.content.length ? 0 : at
  return { score, snippet: model.content === '' ? NO_CONTENT : model.content.slice(from, from + SNIPPET_CHARS) }
}
