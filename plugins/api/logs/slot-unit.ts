/**
 * The slot whose engine a unit means; null when it is no slot's. Engines are containers or child processes here and write to
 * no journal, so their own logs are read whether there is a systemd or not. Pure.
 */
export function slotOfUnit (unit: string, slots: readonly string[]): string | null {
  const name = /^svc-slot@(.+?)(?:\.service)?$/.exec(unit)?.[1]
  return name !== undefined && slots.includes(name) ? name : null
}
