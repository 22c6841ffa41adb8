interface OpenCall {
  readonly id: string
  isOpen: boolean
}

/** Calls in the order in which they were made. What was answered is left behind as it is met, so each is passed once. */
class CallLine {
  readonly #calls: OpenCall[] = []
  #passed = 0

  add (call: OpenCall): void {
    this.#calls.push(call)
  }

  /** The first open one, which is open no longer; undefined without any. */
  take (): OpenCall | undefined {
    while (this.#passed < this.#calls.length) {
      const call = this.#calls[this.#passed++]!
      if (!call.isOpen) continue
      call.isOpen = false
      return call
    }
    return undefined
  }
}

/** Ids for the calls of a conversation whose format has none, or not always, so that chat can tell which result is whose. */
export class OpenCalls {
  readonly #all = new CallLine()
  readonly #byName = new Map<string, CallLine>()
  readonly #byId = new Map<string, CallLine>()
  #count = 0

  /** The id of a call: its own, or a new one. */
  made (own: string, name: string): string {
    const id = own === '' ? this.#next() : own
    const call = { id, isOpen: true }
    for (const line of [this.#all, lineOf(this.#byName, name), lineOf(this.#byId, id)]) line.add(call)
    return id
  }

  /** The id of the call that a result answers: its own, else the first open one of its name, else the first. */
  answered (own: string, name: string): string {
    if (own !== '') {
      this.#byId.get(own)?.take()
      return own
    }
    return (this.#byName.get(name)?.take() ?? this.#all.take())?.id ?? this.#next()
  }

  #next (): string {
    return `call_${this.#count++}`
  }
}

function lineOf (lines: Map<string, CallLine>, key: string): CallLine {
  const line = lines.get(key) ?? new CallLine()
  lines.set(key, line)
  return line
}
