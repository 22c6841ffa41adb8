import { MARK } from './gateway-unit.js'

/** Units of the services beside the gateway: what its user may drive, beside what `--allow` names. */
export const COMPANION_UNITS = [
  'svc-openwebui.service', 'svc-slot@img.service', 'svc-agent@hermes.service', 'hindsight-api.service'
] as const

/** What starts at the gateway's word and does as root what polkit cannot grant for one unit alone. */
export const SWITCHES = ['enable', 'disable'] as const
export const switchUnit = (verb: typeof SWITCHES[number]): string => `svc-unit-${verb}@.service`

/** Name of a unit that the gateway's user may be given. Pure. */
export function isUnitName (name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9@_.:-]{0,200}\.service$/.test(name)
}

/**
 * A rule of polkit: the gateway's user may start, stop and restart these units, and restart its own, without a password.
 * To enable units is never granted: polkit is not told which ones, and an account that may enable any unit is as good as
 * root. Switches of their own, which it may start for these units, do that. Pure.
 */
export function polkitRule (user: string, own: string, units: readonly string[]): string {
  const switches = units.flatMap(unit => SWITCHES.map(verb => switchUnit(verb).replace('@.', `@${unit}.`)))
  return `// ${MARK}
polkit.addRule(function (action, subject) {
    if (action.id !== "org.freedesktop.systemd1.manage-units" || subject.user !== ${JSON.stringify(user)}) return polkit.Result.NOT_HANDLED;
    var units = ${JSON.stringify(units)};
    var switches = ${JSON.stringify(switches)};
    var unit = action.lookup("unit"), verb = action.lookup("verb");
    var allowed = unit === ${JSON.stringify(own)} ? verb === "restart"
        : switches.indexOf(unit) >= 0 ? verb === "start"
        : units.indexOf(unit) >= 0 && ["start", "stop", "restart"].indexOf(verb) >= 0;
    return allowed ? polkit.Result.YES : polkit.Result.NOT_HANDLED;
});
`
}

/** A template: its instance is the name of the unit that it switches on or off. Pure. */
export function switchTemplate (verb: typeof SWITCHES[number], systemctl: string): string {
  return `# ${MARK}
[Unit]
Description=${verb}s %i for the gateway

[Service]
Type=oneshot
ExecStart=${systemctl} ${verb} -- %i
`
}
