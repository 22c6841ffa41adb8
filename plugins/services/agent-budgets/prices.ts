import { z } from 'zod'

const usd = z.number().min(0).max(1_000_000)

/** US dollars for a million tokens, and for a request. */
export const priceSchema = z.strictObject({
  input_usd_per_mtok: usd.default(0),
  /** Of input that the upstream read from its cache; by default what other input costs. */
  cached_input_usd_per_mtok: usd.optional(),
  output_usd_per_mtok: usd.default(0),
  request_usd: usd.default(0)
})
export type Price = z.output<typeof priceSchema>

/** A change of one; what is left out stays. */
export const pricePatchSchema = z.strictObject({
  input_usd_per_mtok: usd.optional(),
  cached_input_usd_per_mtok: usd.nullable().optional(),
  output_usd_per_mtok: usd.optional(),
  request_usd: usd.optional()
})
export type PricePatch = z.output<typeof pricePatchSchema>

/** `<upstream>/<model>`; a `*` at the end stands for anything. */
export const priceKeySchema = z.string().max(600).regex(/^[a-z0-9][a-z0-9_.-]*\/[^\s*]*\*?$/i, { error: 'must be <upstream>/<model>, or a prefix of it and *' })

/** prices.toml. */
export const pricesFile = {
  file: 'prices.toml',
  schema: z.strictObject({ prices: z.record(priceKeySchema, priceSchema).default({}) })
}

/** Finds the price of a model: by its whole name, else by the longest beginning that fits. */
export class PriceTable {
  readonly #exact: ReadonlyMap<string, Price>
  readonly #beginnings: ReadonlyArray<readonly [beginning: string, price: Price]>

  constructor (prices: Readonly<Record<string, Price>>) {
    const rows = Object.entries(prices)
    this.#exact = new Map(rows)
    this.#beginnings = rows.filter(([key]) => key.endsWith('*')).map(([key, price]) => [key.slice(0, -1), price] as const)
      .toSorted(([a], [b]) => b.length - a.length)
  }

  of (upstream: string, model: string): Price | null {
    const key = `${upstream}/${model}`
    return this.#exact.get(key) ?? this.#beginnings.find(([beginning]) => key.startsWith(beginning))?.[1] ?? null
  }
}

export interface Tokens {
  readonly input: number
  /** Of the input. */
  readonly cached: number
  readonly output: number
}

export function costUsd (price: Price, { input, cached, output }: Tokens): number {
  const fromCache = Math.min(cached, input)
  const { input_usd_per_mtok: full, cached_input_usd_per_mtok: less = full, output_usd_per_mtok: out, request_usd: each } = price
  return ((input - fromCache) * full + fromCache * less + output * out) / 1_000_000 + each
}
