/**
 * @file
 * Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017): 28 x 28 grey images of ten kinds of clothing, in four gzip'd IDX files.
 */
#ifndef FASHION_DATA_H
#define FASHION_DATA_H

#include <stddef.h>

#include <fsdp/fsdp.h>

#include "fashion_images.h"

/** Where Debian has it. */
#define FASHION_DATA_FOLDER "/usr/share/datasets/fashion-mnist"

/** What a program's command line says. */
typedef struct fashion_data_options {
    const char *folder;                    /* --data */
    size_t      train_images, test_images; /* the first so many; 0: all that there are */
} fashion_data_options;

/** Images with their labels, one byte per pixel and per label. */
typedef struct fashion_set {
    size_t         count;
    unsigned char *images, *labels;
} fashion_set;

typedef struct fashion_data {
    fashion_set train, test;
    double      mean, deviation; /* of all pixels to train on, 0 to 255 */
} fashion_data;

/** The name of a class. */
const char *fashion_class_name(size_t label);

/**
 * Rank 0 reads the files, checks every field of them and gives them to all ranks. Collective.
 * @return FSDP_OK; another status: rank 0 has said why, and `data` holds nothing.
 */
fsdp_status fashion_data_load(fsdp_context *ctx, const fashion_data_options *options, fashion_data *data);
void        fashion_data_release(fashion_data *data);

/** Finds mean and deviation of what there is to train on. Local. */
void fashion_data_measure(fashion_data *data);

#endif
