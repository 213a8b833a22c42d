// Times llama.cpp's decode of a GGUF on the CPU: feeds COUNT tokens one at a time and prints tokens per second, then the
// instruction sets that ggml uses.
//
//   llama_decode MODEL.gguf COUNT THREADS
//
// Token ids are (i * 2654435761 mod 2^32) / 128 mod vocabulary. The first tenth warms up and is not counted.
#include "llama.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

int main(int argc, char ** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s MODEL.gguf COUNT THREADS\n", argv[0]);
        return 2;
    }
    const int count = std::atoi(argv[2]);
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_backend_init();
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    llama_model * model = llama_model_load_from_file(argv[1], model_params);
    if (!model) return 1;
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 4096;
    params.n_seq_max = 1;
    params.n_threads = params.n_threads_batch = std::atoi(argv[3]);
    llama_context * context = llama_init_from_model(model, params);
    if (!context) return 1;
    const uint32_t vocabulary = (uint32_t) llama_vocab_n_tokens(llama_model_get_vocab(model));

    const int warm = count / 10;
    auto begin = std::chrono::steady_clock::now();
    float sum = 0;
    for (int i = 0; i < count; i++) {
        if (i == warm) begin = std::chrono::steady_clock::now();
        llama_token token = (llama_token) (((uint32_t) i * 2654435761u >> 7) % vocabulary);
        if (llama_decode(context, llama_batch_get_one(&token, 1)) != 0) return 1;
        sum += llama_get_logits_ith(context, -1)[0];
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%.2f\n%s\n", (count - warm) / seconds, llama_print_system_info());
    std::fprintf(stderr, "%g\n", sum);
    llama_free(context);
    llama_model_free(model);
    return 0;
}
