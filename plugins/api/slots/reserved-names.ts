/** Names that stand for something else right under `/api/slots/`. */
export const reservedNames: ReadonlySet<string> = new Set(['metrics', 'capacity'])
