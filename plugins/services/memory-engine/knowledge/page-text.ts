import type { MentalModel } from '../models/mental-model-table.js'
import { wireTime } from '../wire/times.js'
import { byParent, type KnowledgeNode } from './node-table.js'

export const NO_CONTENT = 'No content yet.'

export interface Page {
  readonly node: KnowledgeNode
  readonly model: MentalModel
}

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

/** The start of a bundle: what is in it, as a tree. Pure. */
export function indexMarkdown (nodes: readonly KnowledgeNode[], modelOf: (id: string) => MentalModel): string {
  const children = byParent(nodes)
  const lines = (parent: number | null, depth: number): string[] => (children.get(parent) ?? []).flatMap(node => {
    const indent = '  '.repeat(depth)
    if (node.kind === 'folder') return [`${indent}- **${node.name}/**`, ...lines(node.seq, depth + 1)]
    return [`${indent}- [${node.name}](./${node.id}.md) — ${modelOf(node.modelId!).sourceQuery}`]
  })
  return `${front([['type', 'index'], ['title', 'Knowledge base']])}\n# Knowledge base\n\n${lines(null, 0).map(line => `${line}\n`).join('')}`
}

/** What a page held before, the latest first. Pure. */
export function logMarkdown ({ node }: Page, history: ReadonlyArray<{
  readonly changedAt: number
  readonly change: Readonly<Record<string, unknown>>
}>): string {
  const entries = history.map(({ changedAt, change }) => {
    const content = change.previous_content
    return `\n## ${wireTime(changedAt)}\n\n${typeof content === 'string' && content !== '' ? content : '_(empty)_'}\n`
  })
  return `${front([['type', 'log'], ['title', `${node.name} — history`]])}\n# ${node.name} — history\n${entries.join('')}`
}

const SNIPPET_CHARS = 240

/** How well a page fits some words, from 0 to 1, and where. Pure. */
export function pageMatch ({ node, model }: Page, query: string): { readonly score: number, readonly snippet: string } {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])]
  const fields: ReadonlyArray<readonly [string, number]> = [[node.name, 1], [model.content, 0.8], [model.sourceQuery, 0.5]]
  const scores = words.map(word => Math.max(0, ...fields.map(([text, weight]) => text.toLowerCase().includes(word) ? weight : 0)))
  const score = words.length === 0 ? 0 : scores.reduce((sum, each) => sum + each, 0) / words.length
  const at = Math.max(0, Math.min(
    ...words.map(word => model.content.toLowerCase().indexOf(word)).filter(place => place >= 0), model.content.length
  ) - 60)
  const from = at >= model.content.length ? 0 : at
  return { score, snippet: model.content === '' ? NO_CONTENT : model.content.slice(from, from + SNIPPET_CHARS) }
}
