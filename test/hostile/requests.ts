type Json = Readonly<Record<string, unknown>>

/** Numbers from 0 to 1; the same for the same seed (mulberry32). */
export type Random = () => number

export function seeded (seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export interface HostileRequest {
  readonly kind: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  /** The client closes its half of the connection with the request. */
  readonly halfClosed: boolean
  /** The answer is a stream that does not end by itself. */
  readonly stream: boolean
}

interface Operation {
  readonly parameters?: ReadonlyArray<{ readonly name: string, readonly in: string, readonly schema?: Json }>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Json }>> }
  readonly responses: Readonly<Record<string, { readonly content?: Json }>>
}

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Json>> }
}

const KIB = 1024
const words = ['agent', 'fake-model', 'x', '', 'true', '-1', 'constructor', '__proto__', '%00', '😀', 'a'.repeat(300), 'null', '*', '--port', '\u0000', '..']

/**
 * Requests that nobody means well with, made from the API document: bodies that nearly fit, too deep, too wide, the same keys
 * again and again, what is no JSON, other types, other sites, half-closed connections. Paths that begin at the root of
 * the file system lie below `home`, so that nothing is written elsewhere.
 */
export class HostileRequests {
  readonly #document: ApiDocument
  readonly #random: Random
  readonly #home: string
  readonly #operations: ReadonlyArray<readonly [method: string, path: string, operation: Operation]>

  constructor (document: ApiDocument, random: Random, home: string) {
    this.#document = document
    this.#random = random
    this.#home = home
    this.#operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [method.toUpperCase(), path, operation] as const))
  }

  next (): HostileRequest {
    const [own, path, operation] = this.#one(this.#operations)
    const method = this.#chance(0.03) ? this.#one(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'OPTIONS', 'PROPFIND']) : own
    const kind = this.#one(['fitting', 'fitting', 'fitting', 'odd', 'deep', 'wide', 'duplicated', 'long', 'broken', 'half-closed', 'cross-site'] as const)
    const schema = Object.values(operation.requestBody?.content ?? {})[0]?.schema
    const hasBody = method !== 'GET' && method !== 'OPTIONS' && (schema !== undefined || kind !== 'fitting')
    return {
      kind,
      method,
      path: this.#path(path, operation),
      headers: {
        'content-type': this.#chance(0.05) ? 'text/plain' : 'application/json',
        ...(kind === 'cross-site' ? { 'sec-fetch-site': 'cross-site', ...(this.#chance(0.5) ? { origin: 'https://evil.example' } : {}) } : {})
      },
      body: hasBody ? this.#body(kind, schema ?? {}) : null,
      halfClosed: kind === 'half-closed',
      stream: Object.values(operation.responses).some(({ content }) => content?.['text/event-stream'] !== undefined)
    }
  }

  #path (path: string, { parameters = [] }: Operation): string {
    const filled = path.replace(/\{\w+\}/g, () => encodeURIComponent(this.#word()))
    const query = parameters.filter(parameter => parameter.in === 'query' && this.#chance(0.4))
      .map(({ name, schema = {} }) => `${name}=${encodeURIComponent(String(this.#chance(0.7) ? this.#value(schema, 3) : this.#word()))}`)
    return filled + (query.length === 0 ? '' : `?${query.join('&')}`)
  }

  #body (kind: string, schema: Json): string {
    const size = Math.floor(this.#random() * 64 * KIB)
    switch (kind) {
      case 'deep': {
        const depth = 1 + Math.floor(this.#random() * this.#one([70, 5_000, 30_000]))
        const [open, close] = this.#one([['[', ']'], ['{"a":', '}']] as const)
        const deep = open.repeat(depth) + '1' + close.repeat(depth)
        const key = this.#key(schema)
        return this.#chance(0.5) ? deep : `{${JSON.stringify(key)}:${deep}}`
      }
      case 'wide': {
        const keys = Array.from({ length: 1 + Math.floor(size / 12) }, (_, i) => [`k${i}`, this.#one([1, null, 'x', [], {}])])
        const wide = Object.fromEntries(keys) as Json
        const list = Array.from({ length: 1 + Math.floor(size / 4) }, () => this.#one([1, '', null]))
        const key = this.#key(schema)
        return JSON.stringify(this.#one([wide, { [key]: wide }, { ...this.#fitting(schema), ...wide }, { [key]: list }]))
      }
      case 'duplicated':
        return `{${Array.from({ length: 1 + Math.floor(size / 24) }, () => this.#member(schema)).join(',')}}`
      case 'long':
        return JSON.stringify({ ...this.#fitting(schema), [this.#key(schema)]: this.#one(['x', '\\', '"', 'é', '[{']).repeat(size / 2) })
      case 'broken': {
        const whole = JSON.stringify(this.#fitting(schema))
        const cut = whole.slice(0, Math.floor(this.#random() * whole.length))
        return this.#one([cut, '\ufeff' + whole, '[]', 'null', '', 'name=x', '{'.repeat(size), '\u0000'.repeat(50)])
      }
      case 'odd':
        return JSON.stringify({ ...this.#fitting(schema), [this.#key(schema)]: this.#one<unknown>([null, [null], {}, [], -1, 1e308, 'x', true, [[[]]]]) })
      default:
        return JSON.stringify(this.#fitting(schema))
    }
  }

  #member (schema: Json): string {
    return `${JSON.stringify(this.#key(schema))}:${JSON.stringify(this.#scalar())}`
  }

  #fitting (schema: Json): Json {
    const value = this.#value(schema, 0)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Json : {}
  }

  #value (given: Json, depth: number): unknown {
    const schema = this.#resolved(given)
    const ways = (schema.anyOf ?? schema.oneOf) as readonly Json[] | undefined
    if (ways !== undefined) return this.#value(this.#one(ways), depth + 1)
    if (schema.const !== undefined) return schema.const
    if (Array.isArray(schema.enum)) return this.#one(schema.enum as readonly unknown[])
    const type: unknown = Array.isArray(schema.type) ? this.#one(schema.type as readonly unknown[]) : schema.type
    if (type === 'object' || schema.properties !== undefined) return this.#object(schema, depth)
    if (type === 'array') {
      const count = depth > 6 ? 0 : Math.floor(this.#random() * 3)
      return Array.from({ length: count }, () => this.#value((schema.items ?? {}) as Json, depth + 1))
    }
    if (type === 'integer' || type === 'number') return this.#number(schema)
    if (type === 'boolean') return this.#chance(0.5)
    return type === 'string' ? this.#word() : this.#scalar()
  }

  #object ({ properties = {}, required = [] }: Json, depth: number): Json {
    const entries = Object.entries(properties as Readonly<Record<string, Json>>)
      .filter(([key]) => (required as readonly string[]).includes(key) || (depth < 6 && this.#chance(0.25)))
    return Object.fromEntries(entries.map(([key, schema]) => [key, this.#value(schema, depth + 1)]))
  }

  #number ({ minimum, maximum }: Json): number {
    const [low, high] = [Number(minimum ?? 0), Number(maximum ?? 10_000)]
    const between = Math.floor(low + this.#random() * (high - low))
    return this.#one([low, high, low - 1, high + 1, between, 0.5, Number.MAX_SAFE_INTEGER])
  }

  #resolved (schema: Json): Json {
    let at = schema
    for (let hops = 0; typeof at.$ref === 'string' && hops < 8; hops++) {
      at = this.#document.components.schemas[at.$ref.split('/').at(-1)!] ?? {}
    }
    return at
  }

  #key (schema: Json): string {
    const keys = Object.keys((this.#resolved(schema).properties ?? {}) as object)
    return keys.length > 0 && this.#chance(0.8) ? this.#one(keys) : this.#word()
  }

  #scalar (): unknown {
    return this.#one<unknown>([0, 1, -1, true, null, this.#word()])
  }

  #word (): string {
    return this.#chance(0.1) ? `${this.#home}/made/${Math.floor(this.#random() * 5)}` : this.#one(words)
  }

  #one<T> (values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)]!
  }

  #chance (share: number): boolean {
    return this.#random() < share
  }
}
