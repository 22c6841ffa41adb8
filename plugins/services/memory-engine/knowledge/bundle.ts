import type { Core } from '../core.js'
import { MentalModelTable } from '../models/mental-model-table.js'
import { NodeTable } from './node-table.js'
import { indexHead, indexLine, logEntry, logHead, pageMarkdown } from './page-text.js'

/** All of a knowledge base as `KnowledgePageBundleResponse`, as JSON, a few rows at a time. */
export function* bundleOf (core: Core, bank: number): Generator<string> {
  const [nodes, models] = [new NodeTable(core), new MentalModelTable(core)]
  yield '{"files":['
  yield* file('index.md', indexHead)
  for (const { node, depth, description } of nodes.tree(bank)) yield inString(indexLine(node, depth, description))
  yield '"}'
  for (const page of nodes.pages(bank)) {
    yield ','
    yield* file(`${page.node.id}.md`, pageMarkdown(page, ''))
    yield '"}'
    let isBegun = false
    for (const { changedAt, content } of models.contents(page.model.seq)) {
      if (!isBegun) {
        yield ','
        yield* file(`${page.node.id}.log.md`, logHead(page))
      }
      isBegun = true
      yield inString(logEntry(changedAt, content))
    }
    if (isBegun) yield '"}'
  }
  yield ']}'
}

/** The first words of a file, whose end is left open. */
function* file (path: string, beginning: string): Generator<string> {
  yield `{"path":${JSON.stringify(path)},"content":"${inString(beginning)}`
}

function inString (text: string): string {
  return JSON.stringify(text).slice(1, -1)
}
