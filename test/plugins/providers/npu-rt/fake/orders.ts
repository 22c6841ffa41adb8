import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

const LOOK_MS = 20

/** What tests want of a program that runs, a line each: the content of the file that FAKE_FLM_ORDERS names. */
export function orders (): string {
  const path = process.env.FAKE_FLM_ORDERS
  return path === undefined || !existsSync(path) ? '' : readFileSync(path, 'utf8')
}

/** Resolves once there is no such order. */
export async function whileOrdered (isOrdered: () => boolean): Promise<void> {
  while (isOrdered()) await pause(LOOK_MS)
}
