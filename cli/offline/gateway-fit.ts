export { gatewayMisfit, jsonProblem, keyPlace } from '../../kernel/host/packages/gateway-fit.js'
export { HOST_PACKAGE } from '../../kernel/host/packages/package-source.js'
