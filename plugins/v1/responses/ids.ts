import { randomUUID } from 'node:crypto'

/** An id that cannot be guessed: it is all that a client needs to read what it stands for. */
export function newId (kind: string): string {
  return `${kind}_${randomUUID().replaceAll('-', '')}`
}

/** Ids of engines that count, or are short, can be guessed. */
export function isUnguessable (id: unknown): id is string {
  return typeof id === 'string' && /^[\w-]{24,200}$/.test(id)
}
