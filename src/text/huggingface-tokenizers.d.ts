// The parts of the package's interface that we use; its own declarations do not resolve in ES modules.
declare module '@huggingface/tokenizers' {
  export class Tokenizer {
    constructor(tokenizer: object, config: object);
    encode(text: string, options?: { add_special_tokens?: boolean }): { ids: number[] };
    id_to_token(id: number): string | undefined;
    get_vocab(): Map<string, number>;
  }
  export class BertNormalizer {
    constructor(config: object);
    normalize(text: string): string;
  }
  export class BertPreTokenizer {
    pre_tokenize(text: string): string[];
  }
}
