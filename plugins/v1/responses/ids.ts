import { randomUUID } from 'node:crypto'

/** An id that cannot be guessed: whoever knows one may read what it stands for. */
export function newId (kind: string): string {
  return `${kind}_${randomUUID().replaceAll('-', '')}`
}

/** Ids of engines that count, or are short, are known to everybody. */
export function isUnguessable (id: unknown): id is string {
  return typeof id === 'string' && /^[\w-]{24,200}$/.test(id)
}
