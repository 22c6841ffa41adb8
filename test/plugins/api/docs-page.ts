import { createContext, runInContext } from 'node:vm'
import { script } from '../../../plugins/api/docs/page-script.js'

/** As much of an element as the page's script needs. */
class Node {
  children: Array<Node | string> = []
  readonly dataset: Record<string, string> = {}
  readonly attributes: Record<string, string> = {}
  readonly #listeners: Array<() => void> = []
  hidden = false
  value = ''

  constructor (readonly tag: string) {}

  set textContent (text: string) { this.children = [text] }

  setAttribute (name: string, value: string): void { this.attributes[name] = value }
  addEventListener (_type: string, listener: () => void): void { this.#listeners.push(listener) }
  fire (): void { for (const listener of this.#listeners) listener() }
  append (child: Node | string): void { this.children.push(child) }

  text (): string {
    return this.children.map(child => typeof child === 'string' ? child : child.text()).join('')
  }

  all (): Node[] {
    return [this, ...this.children.flatMap(child => typeof child === 'string' ? [] : child.all())]
  }
}

/** The docs page as its own script makes it, without a browser. */
export interface DocsPage {
  /** All that it shows, from top to bottom. */
  readonly text: string
  readonly curls: readonly string[]
  /** Elements with this tag or class. */
  readonly texts: (tagOrClass: string) => readonly string[]
  /** What the list of groups shows. */
  readonly groups: () => readonly string[]
  readonly search: (words: string) => void
}

export async function docsPage (openapi: unknown, address = 'http://127.0.0.1:8080/api/docs'): Promise<DocsPage> {
  const nodes = new Map<string, Node>()
  const named = (id: string): Node => {
    if (!nodes.has(id)) nodes.set(id, new Node(id))
    return nodes.get(id)!
  }
  await new Promise<void>(resolve => {
    runInContext(script, createContext({
      document: {
        createElement: (tag: string) => new Node(tag),
        getElementById: (id: string) => {
          if (id !== '') return named(id)
          resolve()
          return null
        }
      },
      location: { hash: '', href: address },
      navigator: {},
      addEventListener: () => {},
      fetch: async () => ({ ok: true, json: async () => openapi })
    }))
  })
  const texts = (tagOrClass: string): string[] => named('operations').all()
    .filter(({ tag, attributes }) => tag === tagOrClass || attributes.class?.split(' ').includes(tagOrClass) === true).map(node => node.text())
  return {
    text: named('operations').text(),
    curls: texts('curl'),
    texts,
    groups: () => named('groups').children.filter(child => typeof child !== 'string' && !child.hidden).map(child => (child as Node).text()),
    search: words => {
      named('search').value = words
      named('search').fire()
    }
  }
}
