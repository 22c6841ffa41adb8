import { resolvePaths } from '../../../kernel/config/paths.js'
import type { Paths } from '../../../kernel/contract/index.js'
import { runningGateway } from '../../../kernel/state/home-lock.js'

/** What the lock of a home tells about its gateway. `closed`: this user may not read it. */
export type GatewayOfHome =
  | { readonly state: 'listening', readonly url: string, readonly pid: number }
  | { readonly state: 'starting', readonly pid: number }
  | { readonly state: 'none' }
  | { readonly state: 'closed', readonly code: string }

/** A running gateway writes its address into the lock of its home. */
export function gatewayOfHome (home: string | null): Promise<GatewayOfHome> {
  return gatewayAt(resolvePaths({}, home === null ? {} : { home }))
}

/** Null when none runs there, or it cannot be told. */
export async function addressOf (paths: Paths): Promise<string | null> {
  const found = await gatewayAt(paths)
  return found.state === 'listening' ? found.url : null
}

export async function gatewayAt ({ state }: Pick<Paths, 'state'>): Promise<GatewayOfHome> {
  try {
    const holder = await runningGateway({ state })
    if (holder === null) return { state: 'none' }
    const { pid, text } = holder
    return text.startsWith('http') ? { state: 'listening', url: text, pid } : { state: 'starting', pid }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    return code === 'ENOTDIR' ? { state: 'none' } : { state: 'closed', code }
  }
}
