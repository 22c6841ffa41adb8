import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { bundledProgram, isFresh } from './bundle/fresh.js'

/** What ships, where it was built from the sources as they are, as `npm test` does; else what the compiler wrote. */
export const bin = isFresh() ? bundledProgram : fileURLToPath(new URL('../cli/svc.js', import.meta.url))

/** What ships, made now if need be. */
export function shippedProgram (): string {
  if (!isFresh()) execFileSync(process.execPath, [fileURLToPath(new URL('./bundle/bundle.js', import.meta.url))], { stdio: 'inherit' })
  return bundledProgram
}
