import { WebSocket } from 'undici'
import { settlesWithin, type Clock, type EngineAddress } from 'svc-gateway/plugin'
import { z } from 'zod'

/** What ComfyUI tells of a run: `progress` inside a node, `executing` from node to node, and its end. */
export interface ProgressMessage {
  readonly type: string
  readonly promptId: string | null
  /** Null when the run is over, and in messages that name none. */
  readonly node: string | null
  readonly value: number | null
  readonly max: number | null
}

const messageSchema = z.looseObject({
  type: z.string(),
  data: z.looseObject({
    prompt_id: z.string().nullish(), node: z.string().nullish(), value: z.number().nullish(), max: z.number().nullish()
  }).nullish()
})

/** How long a run waits for the connection before it goes on without. */
const CONNECT_TIMEOUT_MS = 2_000

/**
 * The engine's event stream for one client id. It only makes things visible sooner: whether a run is over is for the
 * history to say, so a connection that fails or breaks is no failure.
 */
export class ProgressFeed {
  readonly #socket: WebSocket
  readonly #opened: Promise<void>
  #closed = false

  constructor ({ host, port }: EngineAddress, clientId: string, onMessage: (message: ProgressMessage) => void) {
    const name = host.includes(':') ? `[${host}]` : host
    this.#socket = new WebSocket(`ws://${name}:${port}/ws?clientId=${encodeURIComponent(clientId)}`)
    this.#opened = new Promise(resolve => {
      this.#socket.addEventListener('open', () => resolve())
      for (const type of ['error', 'close'] as const) {
        this.#socket.addEventListener(type, () => {
          this.#closed = true
          resolve()
        })
      }
    })
    this.#socket.addEventListener('message', ({ data }) => {
      // pictures in between come as binary messages
      const message = typeof data === 'string' ? readMessage(data) : null
      if (message !== null) onMessage(message)
    })
  }

  get live (): boolean { return !this.#closed && this.#socket.readyState === WebSocket.OPEN }

  /** Resolves when it is open, or is not going to be in time. Never rejects. */
  async ready (clock: Clock): Promise<void> {
    await settlesWithin(clock, CONNECT_TIMEOUT_MS, this.#opened)
  }

  close (): void {
    this.#closed = true
    this.#socket.close()
  }
}

function readMessage (text: string): ProgressMessage | null {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return null
  }
  const parsed = messageSchema.safeParse(json)
  if (!parsed.success) return null
  const { type, data } = parsed.data
  return { type, promptId: data?.prompt_id ?? null, node: data?.node ?? null, value: data?.value ?? null, max: data?.max ?? null }
}
