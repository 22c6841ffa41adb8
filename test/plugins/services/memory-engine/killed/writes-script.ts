interface ScriptStep {
  readonly method: string
  /** Below `/v1/default/banks/`; `$id` is the id of the memory with the text `id`. */
  readonly path: string
  readonly body?: object
  readonly id?: string
  /** What lists after it: `bank: text`, sorted. */
  readonly then: readonly string[]
}

const items = (...contents: readonly object[]): object => ({ items: contents })

/** Requests that write, each with the memories that are there afterwards. */
export const script: readonly ScriptStep[] = [
  {
    method: 'POST', path: 'a/memories',
    body: items({ content: 'one', tags: ['x'], entities: [{ text: 'Ann' }] }, { content: 'two', document_id: 'd' }),
    then: ['a: one', 'a: two']
  },
  {
    method: 'POST', path: 'a/memories', body: items({ content: 'three', document_id: 'd', update_mode: 'append' }),
    then: ['a: one', 'a: three', 'a: two']
  },
  { method: 'POST', path: 'b/memories', body: items({ content: 'other' }), then: ['a: one', 'a: three', 'a: two', 'b: other'] },
  {
    method: 'PATCH', path: 'a/memories/$id', id: 'two', body: { text: 'too' },
    then: ['a: one', 'a: three', 'a: too', 'b: other']
  },
  {
    method: 'PATCH', path: 'a/memories/$id', id: 'one', body: { state: 'invalidated' },
    then: ['a: three', 'a: too', 'b: other']
  },
  {
    method: 'PATCH', path: 'a/memories/$id', id: 'one', body: { state: 'valid' },
    then: ['a: one', 'a: three', 'a: too', 'b: other']
  },
  { method: 'DELETE', path: 'a/memories/$id', id: 'three', then: ['a: one', 'a: too', 'b: other'] },
  {
    method: 'POST', path: 'a/memories', body: items({ content: 'four', document_id: 'd' }),
    then: ['a: four', 'a: one', 'b: other']
  },
  { method: 'DELETE', path: 'b', then: ['a: four', 'a: one'] },
  { method: 'DELETE', path: 'a/memories', then: [] }
]
