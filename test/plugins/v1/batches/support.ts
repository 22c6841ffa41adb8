import OpenAI, { toFile } from 'openai'
import type { Test } from 'tap'
import batches from '../../../../plugins/v1/batches/index.js'
import files from '../../../../plugins/v1/files/index.js'
import responses from '../../../../plugins/v1/responses/index.js'
import vectors from '../../../../plugins/v1/vectors/index.js'
import { wireGateway, type WireGateway, type WireOptions } from '../../../wire/wire-gateway.js'

export interface BatchGateway extends WireGateway {
  readonly client: OpenAI
}

/** A gateway with batches, slot `agent` on a fake engine and slot `embed` on another. */
export async function batchGateway (t: Test, options: WireOptions = {}): Promise<BatchGateway> {
  const gateway = await wireGateway(t, {
    ...options,
    plugins: [files, batches, vectors, responses, ...options.plugins ?? []],
    files: { 'etc/svc/slots/embed.toml': 'type = "embedding"\nprovider = "fake"\ndevice = "cpu"\n', ...options.files }
  })
  return Object.assign(gateway, { client: clientOf(gateway.baseUrl) })
}

export function clientOf (url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'anything', maxRetries: 0 })
}

type Endpoint = OpenAI.BatchCreateParams['endpoint']

/** Lines of a file; a text stands as it is. */
export function linesOf (url: string, ...rows: ReadonlyArray<string | Readonly<Record<string, unknown>>>): string {
  return rows.map((row, n) => typeof row === 'string' ? row : JSON.stringify({ custom_id: `row-${n}`, method: 'POST', url, body: row })).join('\n')
}

export async function startBatch (client: OpenAI, lines: string, endpoint: Endpoint = '/v1/chat/completions'): Promise<OpenAI.Batch> {
  const file = await client.files.create({ purpose: 'batch', file: await toFile(Buffer.from(lines), 'requests.jsonl') })
  return await client.batches.create({ input_file_id: file.id, endpoint, completion_window: '24h' })
}

/** Looks again until it fits. */
export async function batchUntil (client: OpenAI, id: string, fits: (batch: OpenAI.Batch) => boolean): Promise<OpenAI.Batch> {
  for (const end = performance.now() + 60_000; ;) {
    const batch = await client.batches.retrieve(id)
    if (fits(batch)) return batch
    if (performance.now() > end) throw new Error(`it did not come about: ${JSON.stringify(batch)}`)
    await new Promise(resolve => { setTimeout(resolve, 10) })
  }
}

export const isOver = ({ status }: OpenAI.Batch): boolean => ['completed', 'failed', 'expired', 'cancelled'].includes(status)

export interface Row {
  readonly id: string
  readonly custom_id: string
  readonly response: {
    readonly status_code: number
    readonly request_id: string
    readonly body: Readonly<Record<string, unknown>>
  } | null
  readonly error: { readonly code: string, readonly message: string } | null
}

export async function rowsOf (client: OpenAI, file: string | null | undefined): Promise<readonly Row[]> {
  if (typeof file !== 'string') return []
  const text = await (await client.files.content(file)).text()
  return text.trimEnd().split('\n').map(line => JSON.parse(line) as Row)
}
