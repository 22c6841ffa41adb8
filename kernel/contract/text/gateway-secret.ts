/** Whether a variable is a secret of the gateway itself, as the model hub's token is: no upstream's key, set or not. Pure. */
export function isGatewaySecret (variable: string): boolean {
  return /^(SVC_|HF_|HUGGING_?FACE)/.test(variable)
}
