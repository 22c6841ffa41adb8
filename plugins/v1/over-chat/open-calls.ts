interface OpenCall {
  readonly id: string
  readonly name: string
}

/** Ids for the calls of a conversation whose format has none, or not always, so that chat can tell which result is whose. */
export class OpenCalls {
  readonly #open: OpenCall[] = []
  #count = 0

  /** The id of a call: its own, or a new one. */
  made (own: string, name: string): string {
    const id = own === '' ? this.#next() : own
    this.#open.push({ id, name })
    return id
  }

  /** The id of the call that a result answers: its own, else the first open one of its name, else the first. */
  answered (own: string, name: string): string {
    const found = this.#open.findIndex(call => own === '' ? call.name === name : call.id === own)
    if (own !== '') {
      if (found !== -1) this.#open.splice(found, 1)
      return own
    }
    return this.#open.splice(Math.max(found, 0), 1)[0]?.id ?? this.#next()
  }

  #next (): string {
    return `call_${this.#count++}`
  }
}
