/** `progress_state` (comfy_execution/progress.py): all nodes of a run that have begun, to every client, at each change of one. */
export class NodeProgress {
  readonly #promptId: string
  readonly #send: (type: string, data: object, clientId: string | null) => void
  readonly #nodes: Record<string, object> = {}

  constructor (promptId: string, send: (type: string, data: object, clientId: string | null) => void) {
    this.#promptId = promptId
    this.#send = send
  }

  start (id: string): void {
    this.#set(id, 'running', 0, 1)
  }

  update (id: string, value: number, max: number): void {
    this.#set(id, 'running', value, max)
  }

  finish (id: string): void {
    const { max = 1 } = this.#nodes[id] as { max?: number } | undefined ?? {}
    this.#set(id, 'finished', max, max)
  }

  #set (id: string, state: 'running' | 'finished', value: number, max: number): void {
    const ids = { node_id: id, prompt_id: this.#promptId, display_node_id: id, parent_node_id: null, real_node_id: id }
    this.#nodes[id] = { value, max, state, ...ids }
    this.#send('progress_state', { prompt_id: this.#promptId, nodes: { ...this.#nodes } }, null)
  }
}
