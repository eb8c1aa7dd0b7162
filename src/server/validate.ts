// Requests against their schemas, with the house's sentences for what does not fit. Queries and paths are text, so that
// their numbers are understood; bodies are taken as they are.
import type { FastifySchemaCompiler, FastifyTypeProvider } from 'fastify';
import type { Static, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { Value } from 'typebox/value';
import { badInput, type UmbelError, unknownName } from '../errors.ts';

/** Gives handlers the types of their schemas. */
export interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: unknown;
}

export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validator = Compile(schema);
  return (given: unknown) => {
    const value = httpPart === 'body' ? given : Value.Convert(schema, given);
    return validator.Check(value)
      ? { value }
      : { error: explainMismatch(validator, value, httpPart ?? 'value') };
  };
};

/** The first thing that is wrong: `top must be >= 1, got 0`. */
export function explainMismatch(validator: Validator, value: unknown, whole: string): UmbelError {
  const errors = validator.Errors(value);
  const extra = errors.find(({ keyword }) => keyword === 'additionalProperties');
  if (extra?.keyword === 'additionalProperties') {
    const known = Object.keys((validator.Type() as { properties?: object }).properties ?? {});
    return unknownName('field', extra.params.additionalProperties[0], known);
  }
  const [first] = errors;
  const name = first.instancePath.slice(1).replaceAll('/', '.') || whole;
  if (first.keyword === 'required')
    return badInput(`${name} must have ${first.params.requiredProperties.join(', ')}`);
  const seen = first.instancePath === '' ? value : Value.Pointer.Get(value, first.instancePath);
  const allowed = first.keyword === 'enum' ? ` one of ${first.params.allowedValues.join(', ')}` : undefined;
  return badInput(`${name} ${allowed ? `must be${allowed}` : first.message}`, {
    value: seen,
  });
}
